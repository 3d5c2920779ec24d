"""One call through the model proxy: `probe.py KEY`. Prints JSON {ok, kind, message}. Standard library only."""

import json
import sys
import urllib.error
import urllib.request


def main(key: str) -> dict:
    """Asks for one word and says what came back."""
    body = json.dumps({"messages": [{"role": "user", "content": "Reply with the word OK."}]}).encode()
    request = urllib.request.Request(
        "http://127.0.0.1:4000/v1/chat/completions",
        body,
        {"Content-Type": "application/json", "Authorization": "Bearer " + key},
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=170) as answer:
            json.load(answer)["choices"]
            return {"ok": True}
    except urllib.error.HTTPError as e:
        try:
            error = json.load(e)["error"]
            return {"ok": False, "kind": error.get("type"), "message": str(error.get("message"))[:600]}
        except (ValueError, KeyError, TypeError, AttributeError):
            return {"ok": False, "kind": "upstream_error", "message": "HTTP %d" % e.code}
    except (OSError, ValueError, KeyError) as e:
        return {"ok": False, "kind": "upstream_error", "message": "%s: %s" % (type(e).__name__, e)}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1])))
