Every error says what, why and what to type next, and has its own exit code:

  $ cd "$(mktemp -d)"
  $ mdmem recall x
  mdmem: no store here: no .mdmem.toml in this folder or above, and no default_store in the configuration
    try: mdmem quickstart, or mdmem init DIR
  [3]
  $ mdmem recall x --json
  {
   "error": {
    "code": "no_store",
    "message": "no store here",
    "hint": "mdmem quickstart, or mdmem init DIR",
    "why": "no .mdmem.toml in this folder or above, and no default_store in the configuration"
   }
  }
  mdmem: no store here: no .mdmem.toml in this folder or above, and no default_store in the configuration
    try: mdmem quickstart, or mdmem init DIR
  [3]
  $ mdmem init store
  Made a dedicated store at * (glob)
  Next: mdmem remember decision "…", then mdmem recall "…"
  $ cd store
  $ mdmem remember "" x
  mdmem: not a memory type: '': a type is a word such as decision, preference, fact or pattern
    try: mdmem remember decision "…"
  [2]
  $ mdmem remember decision ""
  mdmem: there is nothing to remember
    try: mdmem remember decision "…", or - to read it from stdin
  [2]
  $ mdmem show nothing-like-it
  mdmem: no note is named 'nothing-like-it'
    try: look for it: mdmem recall "…", or: mdmem list
  [3]
  $ mdmem set nothing-like-it a=b --json
  {
   "error": {
    "code": "not_found",
    "message": "no note is named 'nothing-like-it'",
    "hint": "look for it: mdmem recall \"…\", or: mdmem list"
   }
  }
  mdmem: no note is named 'nothing-like-it'
    try: look for it: mdmem recall "…", or: mdmem list
  [3]
  $ mdmem recall
  Usage: mdmem recall [OPTIONS] QUERY
  Try 'mdmem recall --help' for help.
  
  Error: Missing argument 'QUERY'.
  [2]
  $ mdmem frobnicate
  Usage: mdmem [OPTIONS] COMMAND [ARGS]...
  Try 'mdmem --help' for help.
  
  Error: No such command 'frobnicate'.
  [2]
  $ mdmem config get no.such
  mdmem: no setting is named no.such
    try: mdmem config list
  [2]
  $ mdmem recall x --since someday
  mdmem: not a date: 'someday'
    try: write 2026-11-30, 2026-11-30T09:00:00Z, 7d or yesterday
  [2]
  $ mdmem remember decision x --scope everywhere
  mdmem: not a scope: 'everywhere': a scope is shared, local, agent:NAME, project:NAME or user:NAME
  [2]

A file that does not parse is named, found by its words and left alone:

  $ mkdir -p memories
  $ printf -- "---\ntitle: 'don't'\n---\nA quokka was seen.\n" > memories/bad.md
  $ cp memories/bad.md ../bad.md
  $ mdmem recall quokka --keyword
  [memory] bad
      memories/bad.md:4-4
      > A quokka was seen.
  
  $ mdmem check
  memories/bad.md:2: the value does not end where its quotes or brackets end, or a line is indented wrongly [bad]
  1 notes, 1 errors, 0 warnings
  [1]
  $ mdmem set memories/bad.md a=b
  mdmem: memories/bad.md cannot be changed: line 2: the value does not end where its quotes or brackets end, or a line is indented wrongly
    try: mend it in an editor, then: mdmem check
  [1]
  $ mdmem fmt
  1 notes, 0 changed
  skipped: memories/bad.md: the value does not end where its quotes or brackets end, or a line is indented wrongly
  $ cmp memories/bad.md ../bad.md

A store of somebody else is read and not written:

  $ rm "$XDG_DATA_HOME/mdmem/trusted.json"
  $ mdmem recall quokka --keyword | head -n 1
  [memory] bad
  $ mdmem remember decision x
  mdmem: the store at * is not trusted: mdmem on this machine neither made nor cloned it, so it is only read (glob)
    try: look at it, then: mdmem -C * trust (glob)
  [1]
  $ mdmem trust
  Trusted: * (glob)
  $ mdmem remember decision x
  Remembered [decision]: x
    memories/x-mem-r4xjd7txz64n.md  [mem-r4xjd7txz64n]
