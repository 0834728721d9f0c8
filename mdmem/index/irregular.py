"""English forms that a stemmer does not bring together: `bought` and `buy`, `children` and `child`.

Left out: forms that are words of their own to a programmer (bit, bound, ground, lay, light, saw, wound)."""

from __future__ import annotations

_FORMS = """
awake awoke awoken|become became|begin began begun|bend bent|bite bitten|bleed bled|blow blew blown|break broke broken
breed bred|bring brought|build built|burn burnt|buy bought|catch caught|choose chose chosen|cling clung|come came
deal dealt|dig dug|draw drew drawn|dream dreamt|drink drank drunk|drive drove driven|eat ate eaten|fall fell fallen|feed fed
feel felt|fight fought|find found|flee fled|fly flew flown|forbid forbade forbidden|forget forgot forgotten
forgive forgave forgiven|freeze froze frozen|get got gotten|give gave given|go went gone|grow grew grown|hang hung
hear heard|hide hid hidden|hold held|keep kept|kneel knelt|know knew known|lead led|leap leapt|learn learnt|leave left
lend lent|lose lost|make made|meet met|overcome overcame|pay paid|prove proven|ride rode ridden|ring rang rung
rise risen|run ran|say said|see seen|seek sought|sell sold|send sent|shake shook shaken|shine shone|shoot shot|show shown
shrink shrank shrunk|sing sang sung|sink sank sunk|sit sat|sleep slept|slide slid|speak spoke spoken|spend spent|spin spun
stand stood|steal stole stolen|stick stuck|strike struck|swear swore sworn|sweep swept|swim swam swum|swing swung
take took taken|teach taught|tear tore torn|tell told|think thought|throw threw thrown|undergo underwent undergone
understand understood|wake woke woken|wear wore worn|weep wept|win won|withdraw withdrew withdrawn|write wrote written
child children|foot feet|goose geese|man men|mouse mice|person people|tooth teeth|wife wives|woman women
index indices|matrix matrices|vertex vertices|criterion criteria|analysis analyses|hypothesis hypotheses
"""

BASE: dict[str, str] = {
    form: base for group in _FORMS.replace("\n", "|").split("|") if group for base, *forms in [group.split()] for form in forms
}
