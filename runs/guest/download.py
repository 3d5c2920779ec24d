"""Downloads one URL inside the sandbox: `download.py URL DIR MAX_BYTES`. Prints JSON: {name, sha256, bytes,
revision} or {error, hint}.

Standard library only. The sandbox's proxy decides what may be reached.
"""

import hashlib
import http.client
import json
import os
import re
import sys
import urllib.error
import urllib.parse
import urllib.request


def main(url: str, folder: str, most: int) -> dict:
    """Fetches to DIR/<name>; never more than `most` bytes."""
    # The sandbox's own loopback is no place for data: an address like that must meet the policy too, and be logged.
    for name in ("no_proxy", "NO_PROXY"):
        os.environ.pop(name, None)
    request = urllib.request.Request(url, headers={"User-Agent": "benchwright", "Accept": "*/*"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            name = _name(answer.geturl())
            kind = answer.headers.get_content_type()
            os.makedirs(folder, exist_ok=True)
            digest, size = hashlib.sha256(), 0
            with open(os.path.join(folder, name), "wb") as out:
                while True:
                    chunk = answer.read(1 << 20)
                    if not chunk:
                        break
                    size += len(chunk)
                    if size > most:
                        return {"error": "it is larger than %d MB" % (most >> 20), "hint": "Upload a smaller extract."}
                    digest.update(chunk)
                    out.write(chunk)
            wanted = answer.headers.get("Content-Length")
            if wanted and wanted.isdigit() and int(wanted) != size:
                return {"error": "the connection broke after %d of %s bytes" % (size, wanted), "hint": "Launch again."}
            revision = answer.headers.get("ETag") or answer.headers.get("Last-Modified")
    except urllib.error.HTTPError as e:
        if "by the host policy" in str(e.reason):
            return _refused(str(e.reason))
        answer = "the server answers %d %s" % (e.code, e.reason)
        return {"error": answer, "hint": "Check that the address can be opened without signing in."}
    except urllib.error.URLError as e:
        if "by the host policy" in str(e.reason):
            return _refused(str(e.reason))
        error = "it can't be reached (%s)" % str(e.reason).rstrip(".")
        return {"error": error, "hint": "Check the address, or upload the file instead."}
    except (OSError, http.client.HTTPException, ValueError) as e:
        return {"error": "it can't be read (%s)" % e, "hint": "Check the address, or upload the file instead."}
    if size == 0:
        return {"error": "it is empty", "hint": "Check the address."}
    return {"name": name, "sha256": digest.hexdigest(), "bytes": size, "revision": revision, "content_type": kind}


def _refused(reason: str) -> dict:
    why = reason.partition(" - ")[2].rstrip(".") or "this host is blocked"
    return {
        "error": "the host policy refuses it: " + why,
        "hint": "Allow the host (PUT /v1/host-policy), or upload the file.",
    }


def _name(url: str) -> str:
    last = urllib.parse.unquote(urllib.parse.urlsplit(url).path).rsplit("/", 1)[-1]
    return re.sub(r"[^\w.() -]+", "_", last).strip(". ")[:160] or "download"


if __name__ == "__main__":
    result = main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    print(json.dumps(result))
    sys.exit(0 if "sha256" in result else 1)
