"""HTTP to one scrapyd. Imported when a node is asked: requests and what it brings along take a
twelfth of the time in which a command starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import requests
from scrapyd_client.pyclient import HEADERS, ScrapydClient, _process_response


class Client(ScrapydClient):
    """scrapyd-client's, which would wait for ever for a node that does not answer.

    :param look_s, change_s: seconds for a connection and for an answer, of what only looks and of
        what changes something
    """

    def __init__(
        self,
        url: str,
        username: str | None,
        password: str,
        *,
        look_s: tuple[float, float],
        change_s: tuple[float, float],
    ) -> None:
        super().__init__(url, username, password)
        self._look_s, self._change_s = look_s, change_s

    def _get(self, basename: str, params: Any = None) -> Any:
        return self.answer(
            requests.get(
                f"{self.url}/{basename}.json",
                params=params or {},
                headers=HEADERS,
                auth=self.auth,
                timeout=self._look_s,
            )
        )

    def _post(
        self,
        basename: str,
        data: Any,
        files: Any = None,
        timeout: tuple[float, float] | None = None,
    ) -> Any:
        return self.answer(
            requests.post(
                f"{self.url}/{basename}.json",
                data=data,
                files=files,
                headers=HEADERS,
                auth=self.auth,
                timeout=timeout or self._change_s,
            )
        )

    @staticmethod
    def answer(response: requests.Response) -> Any:
        if response.status_code in (401, 403):
            raise PermissionError
        return _process_response(response)

    def plain(self, method: str, url: str, headers: Mapping[str, str]) -> requests.Response:
        """The answer as it came, of a file that scrapyd serves."""
        return requests.request(
            method,
            url,
            headers={**HEADERS, **headers},
            auth=self.auth,
            timeout=self._change_s,
        )
