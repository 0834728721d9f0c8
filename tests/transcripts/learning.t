What becomes of a new memory, and settling a doubt:

  $ export MDMEM_EMBEDDING_BACKEND=none MDMEM_SERVE=off
  $ mdmem init store > /dev/null
  $ cd store
  $ mdmem remember decision "CI runs on Jenkins."
  Remembered [decision]: CI runs on Jenkins
    memories/ci-runs-on-jenkins-mem-a7fpfr9a23t4.md  [mem-a7fpfr9a23t4]
  $ mdmem remember decision "CI was moved from Jenkins to GitHub Actions."
  Remembered, replacing the older one [decision]: CI was moved from Jenkins to GitHub Actions
    memories/ci-was-moved-from-jenkins-to-github-actions-mem-7r0585hkmgtv.md  [mem-7r0585hkmgtv]
    Jenkins before, GitHub Actions now: mem-a7fpfr9a23t4
  $ mdmem remember fact "Mocks are allowed in integration tests."
  Remembered [fact]: Mocks are allowed in integration tests
    memories/mocks-are-allowed-in-integration-tests-mem-dr8rh4c7f4v1.md  [mem-dr8rh4c7f4v1]
  $ mdmem remember fact "Mocks are not allowed in integration tests."
  Remembered, but something contradicts it [fact]: Mocks are not allowed in integration tests
    memories/mocks-are-not-allowed-in-integration-tests-mem-p4eepekg42wp.md  [mem-p4eepekg42wp]
    one of the two denies what the other says: mem-dr8rh4c7f4v1
    waits for review: mdmem review
    see also: Mocks are allowed in integration tests  [mem-dr8rh4c7f4v1]
  $ mdmem review
  contradicts: one of the two denies what the other says
    newer 2026-11-30  Mocks are not allowed in integration tests.  [mem-p4eepekg42wp]
    older 2026-11-30  Mocks are allowed in integration tests.  [mem-dr8rh4c7f4v1]
  Settle one: mdmem review settle mem-p4eepekg42wp supersede | reject | merge | keep-both | unrelated
  $ mdmem review settle "Mocks are not allowed in integration tests" supersede
  Settled: the newer one takes the place of the older one [mem-dr8rh4c7f4v1]
  $ mdmem review
  Nothing waits for review.
  $ mdmem review settle "Mocks are not allowed in integration tests" supersede
  mdmem: nothing about 'Mocks are not allowed in integration tests' waits for review
    try: mdmem review
  [3]

A session, told to draw from:

  $ cat > talk.jsonl << END
  > {"type":"user","uuid":"1","sessionId":"talk","timestamp":"2026-11-29T09:00:00Z","cwd":"/x/shop","message":{"role":"user","content":"hi"}}
  > {"type":"assistant","uuid":"2","parentUuid":"1","sessionId":"talk","timestamp":"2026-11-29T09:00:10Z","message":{"role":"assistant","id":"m1","content":[{"type":"text","text":"Hello!"}]}}
  > {"type":"user","uuid":"3","parentUuid":"2","sessionId":"talk","timestamp":"2026-11-29T09:01:00Z","message":{"role":"user","content":"We decided to use NATS 2 as message broker. Does it run on ARM?"}}
  > {"type":"assistant","uuid":"4","parentUuid":"3","sessionId":"talk","timestamp":"2026-11-29T09:01:10Z","message":{"role":"assistant","id":"m2","content":[{"type":"text","text":"It does."}]}}
  > END
  $ mdmem consolidate --session talk.jsonl --dry-run
  1 sessions, 1 statements worth keeping (dry run)
    created     [decision] We decided to use NATS 2 as message broker.  [mem-8sz0sb9ck08x]
  $ mdmem consolidate --session talk.jsonl
  1 sessions, 1 statements worth keeping
    created     [decision] We decided to use NATS 2 as message broker.  [mem-8sz0sb9ck08x]
  $ mdmem consolidate --session talk.jsonl
  1 sessions, 1 statements worth keeping
    known       [decision] We decided to use NATS 2 as message broker.  [mem-8sz0sb9ck08x]
  $ mdmem capture log
  session talk
        1 user skipped: hi
          too short to say anything
        2 assistant skipped: Hello!
          too short to say anything
        3 user skipped: Does it run on ARM?
          a question
        3 created: We decided to use NATS 2 as message broker.
          decision  [mem-8sz0sb9ck08x]
        4 assistant skipped: It does.
          too short to say anything
  $ mdmem show "We decided to use NATS 2 as message broker"
  ---
  id: mem-8sz0sb9ck08x
  kind: memory
  type: decision
  category: decision
  title: We decided to use NATS 2 as message broker
  scope: project:shop
  summary: We decided to use NATS 2 as message broker
  overview: We decided to use NATS 2 as message broker.
  session: talk
  source: ses-20261129-090000ssv13st8#L3
  speaker: user
  confidence: "0.80"
  importance: "0.80"
  created: 2026-11-29T09:01:00Z
  updated: 2026-11-29T09:01:00Z
  ---
  
  We decided to use NATS 2 as message broker.
  $ mdmem consolidate --session nobody
  mdmem: no session 'nobody' on this device: facts are drawn from observations and transcripts, which do not leave the device
    try: mdmem sessions, or give the path of a transcript
  [3]
