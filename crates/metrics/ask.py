"""Asks a Prometheus every query of the dashboard until each has answered with data, and for the health of its rules.

    ask.py DASHBOARD URL SECONDS

Prints each panel's queries with how many series answered and one of their values. Exits with 1 if after that many
seconds a query has no data, or a rule is not healthy.
"""

import json
import math
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

# What Grafana puts for its variables, for a store that is scraped every second.
VARIABLES = {
    "$__rate_interval": "10s",
    "$__range": "30s",
    "$instance": ".*",
    "$store": ".*",
    "$keyspace": ".*",
}


def get(url, path, **parameters):
    with urllib.request.urlopen(f"{url}{path}?{urllib.parse.urlencode(parameters)}", timeout=10) as answer:
        return json.load(answer)["data"]


def targets(dashboard):
    """Title of the panel, letter and text of each query."""
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            query = target["expr"]
            for variable, value in VARIABLES.items():
                query = query.replace(variable, value)
            yield panel["title"], target["refId"], query


def ask(url, query):
    """The values that answer `query`; what is no number does not count."""
    try:
        result = get(url, "/api/v1/query", query=query)["result"]
    except urllib.error.HTTPError as error:
        sys.exit(f"refused: {query}\n{error.read().decode()}")
    values = [float(series["value"][1]) for series in result]
    return [value for value in values if not math.isnan(value)]


def unhealthy_rules(url):
    groups = get(url, "/api/v1/rules")["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    return len(rules), [f'{rule["name"]}: {rule["health"]} {rule.get("lastError", "")}' for rule in rules if rule["health"] != "ok"]


def main(path, url, seconds):
    with open(path, encoding="utf-8") as file:
        waiting = list(targets(json.load(file)))
    count, end = len(waiting), time.monotonic() + float(seconds)
    while waiting and time.monotonic() < end:
        time.sleep(1)
        still = []
        for title, letter, query in waiting:
            if values := ask(url, query):
                print(f"{title} {letter}: {len(values)} series, {max(values):.6g} at most")
            else:
                still.append((title, letter, query))
        waiting = still
    for title, letter, query in waiting:
        print(f"{title} {letter}: NO DATA for {query}")
    rules, sick = unhealthy_rules(url)
    while sick and time.monotonic() < end:
        time.sleep(1)
        rules, sick = unhealthy_rules(url)
    for rule in sick:
        print(f"rule {rule}")
    print(f"{count - len(waiting)} of {count} queries answered, {rules - len(sick)} of {rules} rules healthy")
    return bool(waiting or sick or not count or not rules)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
