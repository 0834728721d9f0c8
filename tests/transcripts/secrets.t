Secrets are named by place and kind, never by value:

  $ cd "$(mktemp -d)"
  $ mdmem init store > /dev/null 2>&1
  $ cd store
  $ mdmem scan-secrets
  $ printf '# Server\n\nlogin bob, password: hunter2\n数据库密码：abc123\n' > server.md
  $ mdmem scan-secrets
  server.md:3: password
  server.md:4: password
  2 secrets found; take them out, or put mdmem:allow-secret on the line
  [1]

What is given to a command is redacted before it is kept:

  $ mdmem remember fact "the key is AKIAABCDEFGHIJKLMNOP, see the vault" 2>&1 | grep taken
  note: taken out before saving: aws-key
  $ grep -rl AKIA memories
  [1]

Installing says what it would do, does it once, and takes it back:

  $ mdmem install agents-md
  Block written: AGENTS.md
  $ mdmem install agents-md
  Nothing to change: AGENTS.md
  $ mdmem uninstall agents-md
  Block taken out: AGENTS.md
  $ test -e AGENTS.md
  [1]
  $ mdmem install git-hooks
  Installed: pre-commit, pre-push, post-merge, post-checkout, post-rewrite
  $ git add server.md
  $ git commit -qm server 2>&1
  server.md:3: password
  server.md:4: password
  2 secrets found; take them out, or put mdmem:allow-secret on the line
  [1]
  $ mdmem uninstall git-hooks
  Taken out: pre-commit, pre-push, post-merge, post-checkout, post-rewrite
  $ mdmem install git-hooks --json | head -3
  {
   "folder": "*/.git/hooks", (glob)
   "written": [
