"""The verdict as one note on a pipeline's merge request, replaced by each pipeline."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import requests

from evmperf.model.errors import LabError, UsageError
from evmperf.model.tokens import usable

TOKEN_VARIABLE = "EVMPERF_GITLAB_TOKEN"
_ANSWER_S = 30.0
_PAGE = 100


@dataclass(frozen=True)
class MergeRequest:
    """The notes of a merge request (GitLab's API v4) and the token for them."""

    notes_url: str
    token: str

    @classmethod
    def of_pipeline(cls, variables: Mapping[str, str] = os.environ) -> Self | None:
        """The merge request of this pipeline, None outside one; raises UsageError without a token."""
        names = ("CI_API_V4_URL", "CI_PROJECT_ID", "CI_MERGE_REQUEST_IID")
        if not all(variables.get(name) for name in names):
            return None
        url, project, number = (variables[name] for name in names)
        token = usable(variables.get(TOKEN_VARIABLE, ""), TOKEN_VARIABLE)
        if not token:
            raise UsageError(
                f"{TOKEN_VARIABLE} is not set: create a project token with the scope api and "
                f"store it in a masked variable"
            )
        return cls(f"{url}/projects/{project}/merge_requests/{number}/notes", token)

    def write(self, topic: str, text: str) -> bool:
        """Write the note of that topic; False when it replaced an earlier one. Raises LabError."""
        mark = f"<!-- evmperf {topic} -->"
        body = {"body": f"{mark}\n{text}"}
        for page in range(1, _PAGE):
            notes = self._ask("GET", self.notes_url, params={"per_page": _PAGE, "page": page}).json()
            for note in notes:
                if str(note.get("body", "")).startswith(mark):
                    self._ask("PUT", f"{self.notes_url}/{note['id']}", json=body)
                    return False
            if len(notes) < _PAGE:
                break
        self._ask("POST", self.notes_url, json=body)
        return True

    def _ask(self, method: str, url: str, **more: Any) -> requests.Response:
        try:
            answer = requests.request(
                method, url, headers={"PRIVATE-TOKEN": self.token}, timeout=_ANSWER_S, **more
            )
        except requests.RequestException as error:
            raise LabError(f"GitLab is not reached ({type(error).__name__}): check CI_API_V4_URL") from None
        if not answer.ok:
            raise LabError(
                f"GitLab answers {answer.status_code} to the note: check {TOKEN_VARIABLE} and its scope"
            )
        return answer
