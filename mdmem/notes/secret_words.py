"""Is this value a secret? Judges one value by itself: a placeholder, code, a word, a name, or something made up at
random. Knows nothing of where it stands."""

from __future__ import annotations

from mdmem.notes.secret_shapes import compiled


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


# What people write where a secret would stand.
_PLACEHOLDER = (
    r"(?i)(?:\[redacted|\[hidden|\[secret|\[filtered|\[masked|\[removed|\[your|\[\w*\])"
    r"|<[^<>\n]{0,60}>?$|\{\{|\$\{|\$\(|\$\[|\$[A-Z_a-z]\w*(?:[)\]}\"';,]|->|::|$)|\[[^\]\n]{0,40}\]\(|&(?:#\w{1,8}|[lg]t|amp|quot);|\d+(?:\.\d+)+$|%\w+%|%\(\w+\)s|%s|\{[\w.\-:!]*\}(?!\w)|#\{|@\{|\.\.\.|…|:\w+$|\(?(?:\(\?|\\[wWsSdD]|\[\^|\.[*+])"
    r"|[:\W]?[*•·●＊x]{3,}$|[*•●]{2,}|_{3,}|-{2,}$|\?{2,}$|your[-_ ]|my[-_](?:api|secret|token|password)"
    r"|(?:insert|enter|put|add|replace|change)[-_ ](?:your|me|this|with)"
    r"|(?:op|vault|ref\+\w+|env|keyring|file|ssm|arn|secretsmanager|bws|akv|gcpsm)://?|env[:.]|ENV\[|arn:aws|!(?:vault|env|secret|Ref|Sub)"
    r"|(?:dummy|example|placeholder|redacted|changeit|todo|tbd|n/a|xxx+)(?![a-z0-9])"
)
# Words that stand after a keyword without being one: types, states, verbs of prose.
WORDS = _set(
    """a an and any are array as asserted auth authentication automatically be been bearer basic blank bool boolean
    both but by byte bytes can cannot char chars class const constant could created credential credentials default
    defined deny denied dict did digest disabled do does double dynamic each either email empty enabled encrypted
    entered env environment error expired expires fails failed false field file float for found from function
    generate generated get given had has have hashed hidden how id if import in incorrect input int integer invalid
    is it its key keyring keys let list long lookup managed manager many map masked may method mismatch missing model
    must name needed never new nil no none not null nullable number object obj of off ok old on one only optional or
    out param parameter parameters params pass passed password passwords passwd path please prompt protected provided
    public pw pwd query random read readonly redacted refresh refused required reset result returns rotate rotated
    same save secret secrets see self set sha should short shown since some state static std stored str string strings
    strong struct symbol text than that the then there they this those to token tokens too true type types undefined
    unique unknown unset update updated use used user username users uuid val valid value values var variable varchar
    vault via void was weak we were what when where which while who will with without word words would wrong yes you
    your agent client server service session cookie header headers body request response data json yaml xml html page
    button label form login logout signin signup hash salt bcrypt scrypt argon2 pbkdf2 plaintext plain length minimum
    maximum policy rule rules limit count size inherit always once next previous current first last node
    option options flag flags argument arguments continue break
    1password bitwarden lastpass keepass keychain undisclosed local remote global oauth oauth2 jwt saml oidc sso ldap mfa"""
)
# In a quoted text of several words: the words of a label or a message, not of a pass phrase.
PROSE = _set(
    """password passwords passwd token secret key credentials your please enter required must should cannot invalid incorrect
    wrong missing mismatch forgot reset change new confirm min max characters least length description user username login
    expired used optional default choose type"""
)
_NAMES = (
    r"(?i)(?:v?\d+(?:\.\d+)*[a-z]?|sha-?\d+|md[45]|utf-?\d+|[hre]s\d+|base\d+|aes-?\d+|rsa-?\d+|ed25519|x25519|secp\d+\w*"
    r"|argon2\w*|pbkdf2|oauth2?|u?int\d+|float\d+|cl\d+k|o\d+k|gpt-?\d\w*|llama\d*|qwen\d*|claude\d*|word2vec|ipv[46]|http2?"
    r"|p\d{1,3}|h\d|s3|ec2|k8s|i18n|l10n|b64|x509|pkcs\d+|[a-z]+)$"
)
_ROOTS = _set(
    """self this args arg config cfg settings conf os process env environ request req res response ctx context params
    options opts props state data json yaml user users credentials creds secrets secret vault db app form event input
    session client row item obj record headers header payload result match parser cli flags kwargs module import window
    document localstorage sys std string buffer base64 json crypto uuid random math system io net path file auth local var
    each module data resource terraform github steps inputs needs vars matrix"""
)
_EXPRESSION = (
    r"[(\[{]?(?P<deref>[&*]|\.\.\.)?(?:f\"|!)?(?P<first>[A-Za-z_][A-Za-z_0-9]*)(?P<path>(?:(?:\??\.|->|::)\$?[A-Za-z_]\w*)*)"
)
_HEX = r"(?:[0-9a-f]{7,128}|[0-9A-F]{7,128})$"
_UUID = r"(?i)[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$"
_PLAIN = r"(?i)(?:https?|file|ftp|ssh|git)://|[./~][\w./]|[A-Za-z]:\\|\d+[a-z]{0,7}$|@[a-z_.]+$|[a-z]+[?!]$"
_KEYWORD_IN = r"(?i)pass|pwd|secret|token|key|cred|auth"


def placeholder(value: str) -> bool:
    """Return whether `value` stands for a secret that is written elsewhere, or is already redacted."""
    return not value or compiled(_PLACEHOLDER).match(value) is not None


def code(value: str, after: str) -> bool:
    """Return whether `value` is an expression of a program; `after` is the text that follows it."""
    name = compiled(_EXPRESSION).match(value)
    if name is None:
        return False
    rest = value[name.end() :]
    digits = compiled(r"\d").search(name[0]) is not None
    if rest[:1] == "(" and (not digits or not after.strip() or ")" in rest + after[:80]):
        return not digits or rest == "(" or "." in name[0] or "_" in name[0]
    if rest[:1] == "[" and "]" in rest + after[:80]:
        return True
    if rest.strip(";,)}]?!"):
        return False
    if name["deref"]:
        return not digits
    if name["path"]:
        root = name["first"].lower()
        return not digits or root in _ROOTS or compiled(_KEYWORD_IN).search(name[0]) is not None
    # One name alone: a variable when it is spelled as one of several words and has no digit.
    several = r"[a-z]+(?:_[a-z]+)+$|[a-z]+(?:[A-Z][a-z]+)+$|_\w+$"
    return not digits and compiled(several).match(name["first"]) is not None


def worded(value: str) -> bool:
    """Return whether `value` is made of words and small numbers: a name, a path, a model, a date, a version."""
    parts = [part for part in compiled(r"[-_./:+,\\ ]+").split(value) if part]
    names = compiled(_NAMES)
    if compiled(r"@?[\w.\-/]+@(?:[\w\-]+\.)+[A-Za-z]{2,}$|@?[\w.\-]+(?:/[\w.\-]+)?@v?\d+(?:\.\d+)+").match(value):
        return True  # an address, a package and its version
    if all((part.isdigit() and len(part) <= 8) or (len(part) <= 24 and names.match(part)) for part in parts):
        return True
    short = compiled(r"[A-Za-z]{0,15}\d{0,8}$|\d{1,8}[A-Za-z]{1,2}$")
    return (len(parts) > 2 and all(short.match(part) for part in parts)) or (
        len(parts) == 2 and value.isascii() and all(part.isalpha() or (len(part) < 5 and short.match(part)) for part in parts)
    )


def hexadecimal(value: str) -> bool:
    """Return whether `value` has the shape of a git hash, a digest or a UUID."""
    return compiled(_HEX).match(value) is not None or compiled(_UUID).match(value) is not None


def mixed(value: str) -> bool:
    """Return whether a short value looks made up: letters with digits or with punctuation inside, not a known name."""
    if len(value) < 4 or worded(value) or compiled(_PLAIN).match(value):
        return False
    return compiled(r"[A-Za-z]").search(value) is not None and compiled(r"\d|[!@#$%^&*?~+=|<>]").search(value) is not None


def random_like(value: str, least: int = 20) -> bool:
    """Return whether `value` (no spaces) looks drawn at random: at least `least` characters, digits among letters, and
    the kind of character changing about as often as in random text. Hashes, UUIDs, paths and joined words are not."""
    if len(value) < least or hexadecimal(value) or worded(value):
        return False
    # Mangled names, digests, images and documents in base64, addresses, paths.
    prefixes = r"(?i)_Z[A-Z]|sha\d+[-:]|iVBORw0|/9j/|R0lGOD|UklGR|PHN2Zy|JVBERi|https?:|data:|\.{0,2}/|~/|[a-z]:\\"
    if compiled(prefixes).match(value):
        return False
    longest = max(compiled(r"[^A-Za-z0-9]+").split(value), key=len)
    if len(longest) < 12 and len(value) < 32:
        return False
    if not compiled(r"\d").search(value) or not compiled(r"[A-Za-z]").search(value):
        return False
    # Letters in a row that are all small: about a tenth of random text, most of a name in a program.
    if compiled(r"[A-Z]").search(value) and sum(map(len, compiled(r"[a-z]{3,}").findall(value[:256]))) > 0.4 * min(
        len(value), 256
    ):
        return False
    pieces = compiled(r"[a-z]+|[A-Z]+|\d+|[^A-Za-z\d]+").findall(value[:256])
    return len(pieces) - 1 >= 0.25 * min(len(value), 256)
