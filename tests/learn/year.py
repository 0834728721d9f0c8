"""One project's year in words: what is said when, what is current at the end, and how one asks for it. Data only.

Each fact: the question, words of the current answer, words of what it is about, and what was said of it over the year in order.
The last statement holds; a statement that begins with `=` repeats the one before in other words.
"""

# ruff: noqa: E501
from __future__ import annotations

Fact = tuple[str, list[str], list[str]]

FACTS: list[Fact] = [
    ("what is the main database of the shop", ["postgresql"], [
        "The main database of the shop is MySQL.", "We switched the main database of the shop from MySQL to PostgreSQL."]),
    ("which port does the staging gateway listen on", ["9443"], [
        "The staging gateway listens on port 8080.", "The staging gateway listens on port 8443.",
        "The staging gateway now listens on port 9443."]),
    ("on which day are deploys", ["tuesday"], [
        "We deploy every Thursday afternoon.", "=Every Thursday afternoon we deploy.", "From now on we deploy every Tuesday afternoon."]),
    ("who owns the billing service", ["omar"], ["Mei owns the billing service.", "Omar took over the billing service from Mei."]),
    ("where does ci run", ["github actions"], ["CI runs on Jenkins.", "CI was moved from Jenkins to GitHub Actions."]),
    ("how long are logs kept", ["90"], ["We keep logs for 30 days.", "We now keep logs for 90 days."]),
    ("what caches the sessions", ["valkey"], [
        "We use Redis for caching sessions.", "=Sessions are cached in Redis.", "We use Valkey instead of Redis for caching sessions."]),
    ("what is the session timeout", ["60"], [
        "The session timeout is 15 minutes.", "The session timeout was raised from 15 to 60 minutes."]),
    ("which package manager do we use", ["uv"], [
        "We use Poetry as package manager.", "We moved from Poetry to uv as package manager."]),
    ("how many approvals does a pull request need", ["three"], [
        "Every pull request needs two approvals.", "Every pull request now needs three approvals."]),
    ("what is the rate limit of the public api", ["200"], [
        "The rate limit of the public API is 100 requests per minute.",
        "The rate limit of the public API is now 200 requests per minute."]),
    ("which message broker do we use", ["nats"], [
        "We decided to use Kafka as message broker.", "We replaced Kafka with NATS as message broker."]),
    ("where do uploads go", ["azure"], ["Uploads are stored in S3.", "Uploads were moved from S3 to Azure."]),
    ("who is on call for search", ["lena"], ["Anna is on call for search.", "Lena is on call for search now."]),
    ("which python versions do we support", ["3.12"], [
        "We support Python 3.11 and newer.", "We now support Python 3.12 and newer."]),
    ("what builds the frontend", ["vite"], [
        "We use Webpack for the frontend build.", "We use Vite instead of Webpack for the frontend build."]),
    ("how often is the search index rebuilt", ["four"], [
        "The search index is rebuilt every two hours.", "The search index is now rebuilt every four hours."]),
    ("what is the upload size limit", ["100"], ["The upload size limit is 25 MB.", "The upload size limit was raised from 25 to 100 MB."]),
    ("where are metrics shown", ["datadog"], ["Metrics are shown in Grafana.", "We replaced Grafana with Datadog, metrics are shown there."]),
    ("when is the standup", ["wednesday"], ["The standup is on Monday.", "The standup is now on Wednesday."]),
    ("数据仓库用什么", ["clickhouse"], ["数据仓库用 Hive", "数据仓库从 Hive 换成了 ClickHouse"]),
    ("网关端口是多少", ["9090"], ["网关端口是 8080", "网关端口改为 9090"]),
    ("缓存过期时间是多久", ["10"], ["缓存过期时间是 30 分钟", "缓存过期时间改为 10 分钟"]),
    ("支付服务由谁负责", ["小李"], ["支付服务由小王负责", "支付服务现在由小李负责"]),
    ("哪天发布新版本", ["周二"], ["每周四下午发布新版本", "以后改成每周二下午发布新版本"]),
    ("消息队列用什么", ["rabbitmq"], ["消息队列用 Kafka", "消息队列不再用 Kafka,改用 RabbitMQ"]),
    ("默认分支叫什么", ["main"], ["默认分支是 master", "默认分支改成 main"]),
    ("代码审查需要几个人批准", ["三人"], ["代码审查至少需要两人批准", "代码审查现在至少需要三人批准"]),
    ("how are commit messages written", ["english"], [
        "All commit messages must be written in English.", "=Commit messages must all be written in English."]),
    ("where are secrets kept", ["vault"], ["Secrets are stored in Vault.", "Secrets are stored in Vault, one path per service."]),
    ("what must every migration have", ["rollback"], ["Every migration needs a rollback script."]),
    ("which timezone do timestamps use", ["utc"], ["All timestamps are kept in UTC.", "=We keep all timestamps in UTC."]),
    ("how do error responses look", ["7807"], ["Error responses must follow RFC 7807."]),
    ("what style of answers does the user want", ["short"], ["I prefer short answers without bullet lists."]),
    ("who is the release manager of the shop", ["release manager"], ["I'm the release manager of the shop."]),
    ("where is the audit bucket located", ["frankfurt"], ["The audit bucket is in Frankfurt."]),
    ("may we force push to main", ["never"], ["Never force-push to main."]),
    ("which linter do we use", ["ruff"], ["We use Ruff for linting."]),
    ("what is the size of the worker pool", ["eight"], ["The worker pool has eight processes."]),
    ("how are container images built", ["buildah"], ["We build container images with Buildah."]),
    ("before merging, what do we do with commits", ["squash"], ["Before merging, all commits must be squashed."]),
    ("who reviews changes to the safety controller", ["joana"], ["Joana reviews every change to the safety controller."]),
    ("when does the nightly backup run", ["03:00"], [
        "The nightly backup runs at 03:00 UTC.", "=Nightly backups run at 03:00 UTC."]),
    ("what is the budget for the app size", ["25"], ["The budget for the app size is 25 MB."]),
    ("提交信息用什么语言", ["英文"], ["提交信息一律用英文写"]),
    ("上传文件最大多少", ["50"], ["上传文件最大为 50 MB"]),
    ("测试环境的地址", ["staging.acme.test"], ["测试环境的地址是 staging.acme.test"]),
    ("密钥可以写进仓库吗", ["密钥"], ["不要把密钥写进代码仓库"]),
    ("前端由谁维护", ["小陈"], ["前端由小陈维护"]),
    ("接口文档放在哪里", ["docs/api"], ["接口文档统一放在 docs/api 目录"]),
]  # fmt: skip

NOISE = [
    ("hi", "Hello!"),
    ("run the tests please", "All tests pass."),
    ("what does the build script do?", "It bundles the assets."),
    ("maybe we should try Haskell some day", "It could be fun."),
    ("帮我看看登录的代码", "好的,我看一下。"),
    ("ok thanks", "You're welcome."),
    ("fix the typo in README.md", "Fixed."),
    ("the login page looks odd in Safari", "I'll check it."),
]
