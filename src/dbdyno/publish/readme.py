"""The page for a stranger who finds a published folder: what lies in it, and how to check it without Dyno."""

from __future__ import annotations

from collections.abc import Mapping

from dbdyno.publish.account import Account
from dbdyno.records.run import BaseRun
from dbdyno.report.words.numbers import moment_text
from dbdyno.report.words.safe import clean

_HEAD = """\
Run {run} of the study {study}
published {when} with Dyno {dyno}

WHAT LIES HERE
  report.html, report.json   what was found, for people and for programs
  run.json, records.jsonl    the run, and all evidence of each trial: the report follows from these alone
  evidence.md                the same trials to read: settings that were read back, checks, failures
  study.toml, files/         the question as it was asked, and the files that it names
  builds/                    how each build that ran was made
  registrations.json         the chain of the store: what was registered before which run began
  publication.json           who published with what, and all runs of this study that the store knew
  statement*.json            an in-toto statement that names every other file by its SHA-256
  figures*.json, build-*     statements on the figures and on each build
"""

_WITH_DYNO = """
CHECK IT WITH DYNO
  dyno verify FOLDER{key}
needs no database. It checks signatures and digests, makes the report again from the records, and names the
runs of this study that were not registered or not shown.
"""

_SIGNED = """
CHECK IT WITHOUT DYNO
The key has the SHA-256 fingerprint {key}.
The copy of it here, key.pub.pem, proves nothing: get the key, or its fingerprint, from the publisher.

  python3 - <<'END'
  import base64, json
  envelope = json.load(open("statement.dsse.json"))
  kind, payload = envelope["payloadType"].encode(), base64.b64decode(envelope["payload"])
  open("../signed", "wb").write(b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload))
  open("../signature", "wb").write(base64.b64decode(envelope["signatures"][0]["sig"]))
  with open("../sums", "w") as sums:
      for one in json.loads(payload)["subject"]:
          print(one["digest"]["sha256"], one["name"], sep="  ", file=sums)
  END
  openssl pkeyutl -verify -pubin -inkey KEY.pem -rawin -in ../signed -sigfile ../signature   (Ed25519)
  openssl dgst -sha256 -verify KEY.pem -signature ../signature ../signed                     (ECDSA)
  sha256sum --check --strict ../sums
"""

_UNSIGNED = """
CHECK IT WITHOUT DYNO
Nobody signed this folder, so its digests show only that it is whole.

  python3 - <<'END'
  import json
  with open("../sums", "w") as sums:
      for one in json.load(open("statement.json"))["subject"]:
          print(one["digest"]["sha256"], one["name"], sep="  ", file=sums)
  END
  sha256sum --check --strict ../sums
"""

_CHAIN = """
THE CHAIN
The digest of an entry is the SHA-256 of {"content":C,"number":N,"previous":P}. C is the SHA-256 of its
content as JSON with sorted keys, without spaces, in ASCII. P is the digest of the entry before, and 64 zeros
for the first. Entries of other studies are here without their content.
"""

_NOT_HERE = """
NOT HERE
{lines}"""


def readme(account: Account, run: BaseRun, kept: Mapping[str, str]) -> str:
    """The whole page. `kept` are the files of the study that are in the folder."""
    head = _HEAD.format(
        run=run.run,
        study=clean(run.study_path),
        when=moment_text(account.published_unix_s),
        dyno=account.made_by.dyno,
    )
    with_dyno = _WITH_DYNO.format(key=" --key KEY.pem" if account.key else "")
    without = _SIGNED.format(key=account.key) if account.key else _UNSIGNED
    return head + with_dyno + without + _CHAIN + _not_here(account, run, kept)


def _not_here(account: Account, run: BaseRun, kept: Mapping[str, str]) -> str:
    """What the run used and the folder does not hold, by its digest."""
    lines = [
        f"  {clean(file.path)}, sha256 {file.digest}: too large, or no text"
        for file in run.files or ()
        if file.text is None
    ]
    lines += [f"  {clean(data.path)}, sha256 {data.sha256}: the data of the study" for data in run.data]
    lines += [f"  the account of build {key}, which its host did not keep any more" for key in account.unkept]
    return _NOT_HERE.format(lines="".join(f"{line}\n" for line in lines)) if lines else ""
