"""The shapes of keys that name their own provider: one table, each row compiled on first use. Knows no context."""

from __future__ import annotations

import re
from collections.abc import Iterator

_B = r"[A-Za-z0-9_\-]"
_HEX32 = r"[0-9a-f]{32}"

# kind, literal beginnings (separated by spaces), expression at such a beginning. A row is tried only where a run of
# sixteen or more key characters holds the beginning with no letter or digit before it.
SHAPES: tuple[tuple[str, str, str], ...] = (
    ("aws-key", "AKIA ASIA AGPA AIDA AROA AIPA ANPA ANVA ABIA ACCA", r"A[A-Z]{3}[A-Z0-9]{12,}(?![a-z])"),
    ("aws-key", "ABSK bedrock-api-key-", r"(?:ABSK|bedrock-api-key-)[A-Za-z0-9+/]{40,}=*"),
    ("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh._[A-Za-z0-9_]{10,}"),
    ("github-token", "github_pat_", r"github_pat_[A-Za-z0-9_]{10,}"),
    (
        "gitlab-token",
        "glpat- gldt- glrt- glcbt- glptt- glft- glimt- glagent- gloas- glsoat- glffct- glwt- GR1348941",
        rf"(?:gl[a-z]+-|GR1348941){_B}{{10,}}(?:\.[0-9a-z]{{2}}\.[0-9a-z]{{7,}})?",
    ),
    ("slack-token", "xox xapp- xwfp-", r"(?:xox[a-z](?:\.xox[a-z])?|xapp|xwfp)-[A-Za-z0-9\-]{8,}"),
    ("stripe-key", "sk_ rk_ pk_", r".k_(?:live|test|prod)_[A-Za-z0-9_]{8,}"),
    ("webhook-secret", "whsec_ whsk_", r"whs[a-z]+_[A-Za-z0-9+/=]{10,}"),
    ("anthropic-key", "sk-ant-", rf"sk-ant-{_B}{{8,}}"),
    ("openai-key", "sk-", rf"sk-(?=[A-Za-z_\-]{{0,40}}\d)(?={_B}{{0,40}}?[A-Za-z0-9]{{16}}){_B}{{16,}}"),
    ("openai-key", "sk-proj- sk-svcacct- sk-admin- sk-or-v1- sk-lf- sk-user-", rf"sk-[a-z]+(?:-v1)?-{_B}{{10,}}"),
    ("openai-key", "sess-", r"sess-(?=[A-Za-z]{0,40}\d)[A-Za-z0-9]{30,}"),
    ("google-key", "AIza", rf"AIza{_B}{{20,}}"),
    ("google-oauth", "ya29. GOCSPX- 1//0 AQ.Ab8", rf"(?:ya29\.|GOCSPX-|1//0|AQ\.Ab8){_B}{{10,}}[A-Za-z0-9_\-.]*"),
    ("huggingface-token", "hf_ api_org_", r"(?:hf|api_org)_[A-Za-z0-9]{16,}"),
    ("npm-token", "npm_", r"npm_[A-Za-z0-9]{20,}"),
    ("pypi-token", "pypi-", rf"pypi-(?=[A-Za-z_\-]{{0,40}}\d|AgE){_B}{{16,}}"),
    ("rubygems-key", "rubygems_", r"rubygems_[a-f0-9]{20,}"),
    ("crates-token", "cio", r"cio(?=[A-Za-z]{0,40}\d)[A-Za-z0-9]{32}(?![A-Za-z0-9])"),
    ("docker-token", "dckr_pat_ dckr_oat_", rf"dckr_.at_{_B}{{10,}}"),
    ("sendgrid-key", "SG.", rf"SG\.{_B}{{10,}}\.{_B}{{10,}}"),
    ("twilio-key", "SK AC", r"..[0-9a-f]{32}(?![0-9a-zA-Z])"),
    ("mailgun-key", "key- pubkey-", rf"(?:pub)?key-{_HEX32}"),
    ("mailchimp-key", "md-", r"md-(?=[A-Za-z_\-]{0,40}\d)[A-Za-z0-9_\-]{22}(?![\w\-])"),
    ("brevo-key", "xkeysib- xsmtpsib-", r"x[a-z]+sib-[0-9a-f]{32,}-?\w*"),
    ("digitalocean-token", "dop_v1_ doo_v1_ dor_v1_", r"do._v1_[a-f0-9]{32,}"),
    ("discord-token", "mfa.", rf"mfa\.{_B}{{40,}}"),
    ("doppler-token", "dp.", r"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_\-]+\.)?[A-Za-z0-9]{20,}"),
    ("vault-token", "hvs. hvb. hvr.", rf"hv.\.{_B}{{10,}}"),
    ("age-key", "AGE-SECRET-KEY-", r"AGE-SECRET-KEY-(?:PQ-)?1[0-9A-Za-z]{20,}"),
    ("databricks-token", "dapi", r"dapi[a-f0-9]{32}(?:-\d)?"),
    ("shopify-token", "shpat_ shpca_ shppa_ shpss_ shpua_", r"shp.._[a-zA-Z0-9]{20,}"),
    ("square-token", "sq0atp- sq0csp- sq0idp-", rf"sq0...-{_B}{{16,}}"),
    ("square-token", "EAAA", rf"EAAA(?=[A-Za-z_\-]{{0,40}}\d){_B}{{50,}}"),
    ("facebook-token", "EAA", r"EAA(?=[A-Za-z]{0,40}\d)[A-Za-z0-9]{40,}"),
    ("linear-key", "lin_api_ lin_oauth_", r"lin_[a-z]+_[A-Za-z0-9]{20,}"),
    ("notion-token", "ntn_ secret_", r"(?:ntn|secret)_(?=[A-Za-z]{0,40}\d)[A-Za-z0-9]{24,}"),
    ("figma-token", "figd_ figdr_", rf"figdr?_{_B}{{20,}}"),
    ("grafana-token", "glsa_ glc_", r"gl(?:sa|c)_[A-Za-z0-9+/=_]{20,}"),
    ("newrelic-key", "NRAK- NRJS- NRII- NRIQ-", r"NR..-[A-Za-z0-9_\-]{16,}"),
    ("sentry-token", "sntrys_ sntryu_", r"sntry._[A-Za-z0-9_\-+/=]{20,}"),
    ("postman-key", "PMAK-", r"PMAK-[a-f0-9]{20,}-[a-f0-9]{20,}"),
    ("atlassian-token", "ATATT3 ATCTT3 ATBB", r"AT(?:[AC]TT3|BB)[A-Za-z0-9_\-=]{24,}"),
    ("airtable-token", "pat", r"pat[A-Za-z0-9]{14}\.[a-f0-9]{40,}"),
    ("supabase-key", "sbp_ sb_secret_ sb_publishable_", rf"sb(?:p|_[a-z]+)_{_B}{{16,}}"),
    ("planetscale-token", "pscale_", r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_\-.=]{16,}"),
    ("vercel-token", "vercel_ vcp_ vci_ vca_ vcr_ vck_", r"v[a-z]+_(?=[A-Za-z]{0,40}\d)[A-Za-z0-9]{24,}"),
    ("netlify-token", "nfp_", r"nfp_[A-Za-z0-9]{20,}"),
    ("fly-token", "fo1_ fm1a_ fm1r_ fm2_", r"f.\w?\w?_[A-Za-z0-9+/=_\-]{30,}"),
    ("heroku-key", "HRKU-", rf"HRKU-{_B}{{20,}}"),
    ("cloudflare-key", "v1.0-", r"v1\.0-[a-f0-9]{24}-[a-f0-9]{100,}"),
    ("groq-key", "gsk_", r"gsk_[A-Za-z0-9]{20,}"),
    ("xai-key", "xai-", r"xai-[A-Za-z0-9]{20,}"),
    ("perplexity-key", "pplx-", r"pplx-(?=[A-Za-z]{0,40}\d)[A-Za-z0-9]{20,}"),
    ("replicate-token", "r8_", r"r8_[A-Za-z0-9]{20,}"),
    ("fireworks-key", "fw_", r"fw_(?=[A-Za-z]{0,40}\d)[A-Za-z0-9]{22,}"),
    ("nvidia-key", "nvapi-", rf"nvapi-{_B}{{20,}}"),
    ("tavily-key", "tvly-", r"tvly-(?:dev-|prod-)?[A-Za-z0-9]{20,}"),
    ("langsmith-key", "lsv2_pt_ lsv2_sk_", r"lsv2_.._[a-f0-9]{32}_?[a-f0-9]*"),
    ("langfuse-key", "sk-lf- pk-lf-", r".k-lf-[a-f0-9\-]{30,}"),
    ("voyage-key", "pa-", r"pa-(?=[A-Za-z_\-]{0,40}\d)[A-Za-z0-9_\-]{40,}"),
    ("jina-key", "jina_", rf"jina_(?=[A-Za-z_\-]{{0,40}}\d){_B}{{40,}}"),
    ("pinecone-key", "pcsk_", r"pcsk_[A-Za-z0-9_]{40,}"),
    ("pulumi-token", "pul-", r"pul-[a-f0-9]{40}"),
    ("buildkite-token", "bkua_ bkpt_ bkaj_ bkct_", rf"bk.._{_B}{{30,}}"),
    ("circleci-token", "CCIPAT_ CCIPRJ_", r"CCIP.._[A-Za-z0-9]{20,}_[a-f0-9]{32,}"),
    ("artifactory-key", "AKCp cmVmd", r"(?:AKCp|cmVmd)[A-Za-z0-9]{50,}"),
    ("nuget-key", "oy2", r"oy2[a-z0-9]{43}(?![a-z0-9])"),
    ("dynatrace-token", "dt0c01. dt0s01. dt0s16.", r"dt0...\.[A-Z0-9]{24}\.[A-Z0-9]{64}"),
    ("contentful-token", "CFPAT-", rf"CFPAT-{_B}{{30,}}"),
    ("typeform-token", "tfp_", r"tfp_[A-Za-z0-9_\-.=]{40,}"),
    ("easypost-key", "EZAK EZTK", r"EZ.K[A-Za-z0-9]{50,}"),
    ("adobe-secret", "p8e-", rf"p8e-{_B}{{30,}}"),
    ("1password-token", "ops_eyJ", r"ops_eyJ[A-Za-z0-9_\-+/=]{60,}"),
    ("1password-key", "A3-", r"A3-[A-Z0-9]{6}-[A-Z0-9]{5,6}(?:-[A-Z0-9]{5,11}){3,}"),
    ("frameio-token", "fio-u-", r"fio-u-[A-Za-z0-9_\-=]{40,}"),
    ("prefect-key", "pnu_", r"pnu_[A-Za-z0-9]{30,}"),
    ("readme-key", "rdme_", r"rdme_[a-z0-9]{60,}"),
    ("flutterwave-key", "FLWSECK FLWPUBK", r"FLW...K(?:_TEST)?-[a-zA-Z0-9]{12,}"),
    ("alibaba-key", "LTAI", r"LTAI[A-Za-z0-9]{12,30}(?![A-Za-z0-9])"),
    ("tencent-key", "AKID", r"AKID[A-Za-z0-9]{28,}"),
    ("tailscale-key", "tskey-", r"tskey-[a-z]+-[A-Za-z0-9]{6,}(?:-[A-Za-z0-9]{10,})?"),
    ("posthog-key", "phx_ phs_", r"ph._[A-Za-z0-9]{30,}"),
    ("jwt", "eyJ", ""),
)

# Rows without a literal beginning: kind, expression. Tried at the first character of a run of forty or more.
RUNS: tuple[tuple[str, str], ...] = (
    ("mailchimp-key", rf"{_HEX32}-us\d{{1,2}}(?!\w)"),
    ("mailgun-key", rf"{_HEX32}-[0-9a-f]{{8}}-[0-9a-f]{{8}}(?![0-9a-f\-])"),
    ("zhipu-key", rf"{_HEX32}\.(?=[A-Za-z]{{0,40}}\d)[A-Za-z0-9]{{16}}(?![A-Za-z0-9])"),
    ("discord-token", rf"[MNO][A-Za-z\d_\-]{{22,27}}\.{_B}{{6}}\.{_B}{{25,}}"),
    ("terraform-token", rf"[A-Za-z0-9]{{14}}\.atlasv1\.{_B}{{20,}}"),
    # A prefix that is in no list, but says what it is: zz_live_…, acme_secret_…
    (
        "key",
        r"[A-Za-z][A-Za-z0-9]{0,11}[_\-](?:live|test|prod|pat|sk|secret|token|apikey|api|key)[_\-]"
        r"(?=[A-Za-z_\-]{0,40}\d)(?=[^A-Z]*[A-Z])(?=[^a-z]*[a-z])[A-Za-z0-9]{20,}",
    ),
)

_TELEGRAM = rf"(?<![\d:])\d{{8,10}}:AA{_B}{{30,}}"
_KEY_BYTES = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_RUN_TABLE = bytes(119 if c in _KEY_BYTES + b"_-.+/" else 32 for c in range(256))
_SOLID_TABLE = bytes(119 if c in _KEY_BYTES else 32 for c in range(256))

_WINDOW = 300

Span = tuple[int, int, str]
_cache: dict[str, re.Pattern[str]] = {}
_rows: dict[str, list[tuple[str, str]]] = {}


def compiled(expression: str) -> re.Pattern[str]:
    """Return the compiled expression, kept for the life of the process."""
    pattern = _cache.get(expression)
    if pattern is None:
        pattern = _cache[expression] = re.compile(expression)
    return pattern


def _heads() -> re.Pattern[str]:
    pattern = _cache.get("")
    if pattern is not None:
        return pattern
    for kind, heads, expression in SHAPES:
        for head in heads.split():
            _rows.setdefault(head, []).append((kind, expression))
    # A longer beginning is found first ("sk-ant-" before "sk-"), so it inherits the rows of the shorter ones.
    for head, rows in _rows.items():
        for other, more in list(_rows.items()):
            if other != head and head.startswith(other):
                rows.extend(more)
    pattern = _cache[""] = re.compile("|".join(re.escape(head) for head in sorted(_rows, key=len, reverse=True)))
    return pattern


def runs(raw: bytes) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of each run of 16 or more key characters that could be a key: one with a digit, or with
    sixteen letters in a row. `raw` is the text in Latin-1, so that positions are those of the text."""
    table = raw.translate(_RUN_TABLE)
    solid: bytes | None = None
    digit, hexadecimal = re.compile(rb"\d"), re.compile(rb"[0-9a-f\-]*+")
    wanted = b"w" * 16
    start = table.find(wanted)
    while start >= 0:
        end = table.find(b" ", start + 16)
        if end < 0:
            end = len(table)
        if digit.search(raw, start, end):
            # Hashes and UUIDs are the most common of runs and hold no key.
            plain = hexadecimal.match(raw, start, end)
            if plain is None or plain.end() < end or end - start >= 49:
                yield start, end
        else:
            if solid is None:
                solid = raw.translate(_SOLID_TABLE)
            if solid.find(wanted, start, end) >= 0:
                yield start, end
        start = table.find(wanted, end)


def find_keys(text: str, found: list[tuple[int, int]]) -> list[Span]:
    """Return the spans of provider keys inside the runs `found` (from `runs`). Linear: an attempt that fails reads at
    most `_WINDOW` characters, and one that succeeds is not read again."""
    spans: list[Span] = []
    for start, end in found:
        spans.extend(_in_run(text, start, end))
    return spans


def _in_run(text: str, start: int, end: int) -> Iterator[Span]:
    heads = _heads()
    at = start
    dot = -1
    while (head := heads.search(text, at, end)) is not None:
        first = head.start()
        at = first + 1
        before = text[first - 1 : first]
        if before.isascii() and before.isalnum():
            continue
        for kind, expression in _rows[head[0]]:
            if kind == "jwt":
                if dot < first:
                    dot = text.find(".", first, end)
                    dot = end if dot < 0 else dot
                stop = _jwt_end(text, first, dot)
            else:
                match = compiled(expression).match(text, first, min(len(text), first + _WINDOW))
                stop = _grow(text, match.end()) if match else 0
            if stop:
                yield first, stop, kind
                at = stop
                break
    if end - start >= 28:
        for kind, expression in RUNS:
            match = compiled(expression).match(text, start, min(len(text), start + _WINDOW))
            if match:
                yield start, _grow(text, match.end()), kind
                break
        if text.startswith(":AA", start - 1):
            match = compiled(_TELEGRAM).search(text, max(0, start - 11), min(end, start + _WINDOW))
            if match:
                yield match.start(), _grow(text, match.end()), "telegram-token"


def _grow(text: str, at: int) -> int:
    match = compiled(rf"{_B}*").match(text, at)
    return match.end() if match else at


def _jwt_end(text: str, first: int, dot: int) -> int:
    """Return the end of the token at `first` whose first dot is at `dot`, 0 when it is none."""
    if dot - first < 11:
        return 0
    match = compiled(rf"\.{_B}{{6,}}+(?:\.{_B}*+){{0,3}}").match(text, dot)
    return match.end() if match else 0
