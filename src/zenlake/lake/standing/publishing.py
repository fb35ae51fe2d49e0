"""Results on the bus: `view/NAME/…` and `alert/NAME/…`, and a token for as long as one runs."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, final

from zenlake.errors import ZError
from zenlake.lake.plain import plain

if TYPE_CHECKING:
    from zenlake.api.session import Session

__all__ = ["ResultPublisher"]

log = logging.getLogger("zenlake.lake")

JSON: Final = "application/json"


@final
class ResultPublisher:
    """Publishes what one view or alert finds."""

    def __init__(self, session: Session | None, root: str) -> None:
        """`root`: `view/NAME` or `alert/NAME`; without a session nothing is published."""
        self.root = root
        self.published = 0
        self._session = session
        self._token = None if session is None else session.liveliness().declare_token(root)

    def put(self, subject: str, result: Mapping[str, Any]) -> None:
        """Publish one result; who does not hear it now finds it in the table."""
        if self._session is None:
            return
        key = f"{self.root}/{subject}" if subject else self.root
        text = json.dumps(plain(dict(result)), ensure_ascii=False)
        try:
            self._session.put(key, text, encoding=JSON)
            self.published += 1
        except ZError as error:
            log.debug("%s was not published: %s", key, error)

    def close(self) -> None:
        """Take back the token that says that the view or alert runs."""
        if self._token is not None and self._session is not None and not self._session.is_closed():
            self._token.undeclare()
        self._token = None
