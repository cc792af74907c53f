"""Tokens, which order effects inside programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..base.avals import AbstractToken, token
from ..core.primitive import Primitive, Zero
from ..core.wire import portable
from ..core.trace import add_type, get_aval
from ..base.errors import type_error

if TYPE_CHECKING:
    from ..core.types import AbstractValue


class Token:
    """The result of `create_token` outside of traced programs, where operations run in order anyway."""

    __slots__ = ()
    aval = token

    def block_until_ready(self) -> Token:
        return self


add_type(Token, lambda x: token)

create_token_p, after_all_p = (
    Primitive("create_token", basic=False, wire=portable()),
    Primitive("after_all", basic=False, wire=portable().and_tokens()),
)


def _after_all_abstract(*tokens: AbstractValue) -> AbstractToken:
    if not all(isinstance(t, AbstractToken) for t in tokens):
        raise type_error(f"after_all takes tokens (of lax.create_token), got {', '.join(map(format, tokens))}.")
    return token


def _after_all_impl(*tokens: Any) -> Token:
    _after_all_abstract(*map(get_aval, tokens))
    return Token()


create_token_p.abstract, create_token_p.impl = (lambda: token), Token
create_token_p.batch = lambda axis, args, dims: (create_token_p.bind(), None)
after_all_p.abstract, after_all_p.impl = _after_all_abstract, _after_all_impl
after_all_p.batch = lambda axis, args, dims: (after_all_p.bind(*args), None)
for _p in (create_token_p, after_all_p):
    _p.cache, _p.reference = None, lambda *tokens: Token()
    _p.jvp = lambda primals, tangents, p=_p: (p.bind(*primals), Zero(token))
