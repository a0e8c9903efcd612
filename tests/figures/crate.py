"""roc-validator on the folders that are given, by the rules of RO-Crate 1.1 that a crate must obey. Exit code 1 if one is no crate.

The terms of RO-Crates are read from the package `rocrate`, where the validator would ask the network for them.
"""

import io
import sys
from email.message import Message
from importlib.resources import files
from urllib.response import addinfourl

import rdflib.parser
import requests
from rocrate_validator import models, services

TERMS = files("rocrate").joinpath("data/ro-crate.jsonld").read_bytes()


def over_http(self, request, **more):
    answer = requests.Response()
    answer.status_code, answer._content, answer.url, answer.request = 200, TERMS, request.url, request
    answer.headers["Content-Type"] = "application/ld+json"
    answer.raw = io.BytesIO(TERMS)
    return answer


def by_rdflib(request):
    head = Message()
    head["Content-Type"] = "application/ld+json"
    return addinfourl(io.BytesIO(TERMS), head, request.full_url, 200)


requests.adapters.HTTPAdapter.send = over_http
rdflib.parser._urlopen = by_rdflib
wrong = 0
for folder in sys.argv[1:]:
    settings = services.ValidationSettings(
        rocrate_uri=folder,
        profile_identifier="ro-crate-1.1",
        requirement_severity=models.Severity.REQUIRED,
        no_cache=True,
    )
    for issue in services.validate(settings).get_issues():
        wrong += 1
        print(f"{folder}: {issue.severity.name}: {issue.check.identifier}: {issue.message}")
sys.exit(wrong > 0)
