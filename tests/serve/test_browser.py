"""The pages in a browser: they are entered, filtered by keys, follow the store, and stay at the end."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.cli.trend_cases import keep
from tests.report.browser import needs_chromium
from tests.serve.browser import browser
from tests.serve.served import serving

pytestmark = [needs_chromium, pytest.mark.usefixtures("homes")]

SHOWN = "[...document.querySelectorAll('ol.runs li:not([hidden])')].length"
FOCUS = "document.activeElement.getAttribute('href') || document.activeElement.name"
SAID = "document.querySelector('.said').textContent"


def test_a_reader_filters_follows_and_keeps_the_list(tmp_path: Path) -> None:
    keep("fast", days_ago=3.0, ratio=1.5)
    keep("slow", days_ago=2.0, ratio=0.5)
    with serving() as served, browser(tmp_path) as reader:
        reader.narrow(360)
        reader.open(f"http://127.0.0.1:{served.visitor.port}/?token={served.visitor.token}")
        assert "token" not in reader.value("location.href")
        assert reader.value(SHOWN) == 2 and reader.value("document.documentElement.scrollWidth") == 360
        reader.value("document.querySelector('[name=text]').value = 'slow'")
        reader.value("document.querySelector('form.filter button').click()")
        reader.wait_for("location.search === '?text=slow' && document.readyState === 'complete'")
        assert reader.value(SHOWN) == 1, "the page's policy lets a filter of all runs go"
        reader.open(f"http://127.0.0.1:{served.visitor.port}/")
        reader.wait_for("location.search === ''")
        reader.key("/")
        for letter in "slow":
            reader.key(letter)
        assert (reader.value(SHOWN), reader.value("document.querySelector('output').value")) == (1, "1 of 2")
        reader.value("document.activeElement.blur()")
        reader.key("j")
        assert reader.value(FOCUS) == "/run/slow"
        # What was typed outlasts a page that is drawn anew; that page is none that was loaded anew.
        reader.value("window.same = true")
        keep("slower", days_ago=1.0, ratio=0.4)
        reader.wait_for("document.querySelectorAll('ol.runs li').length === 3")
        typed = reader.value("document.querySelector('[name=text]').value")
        assert (reader.value("window.same"), typed, reader.value(SHOWN)) == (True, "slow", 2)
        served.process.send_signal(signal.SIGINT)
        reader.wait_for(f"{SAID}.includes('no longer serves this page')")
        assert reader.value(SHOWN) == 2 and reader.faults == []


def test_a_report_draws_its_figures_and_keys_lead_on(tmp_path: Path) -> None:
    keep("fast", days_ago=3.0, ratio=1.5)
    with serving() as served, browser(tmp_path) as reader:
        reader.narrow(360)
        reader.open(f"http://127.0.0.1:{served.visitor.port}/run/fast?token={served.visitor.token}")
        reader.wait_for("document.querySelectorAll('.figure svg').length > 1")
        assert reader.value("document.documentElement.scrollWidth") == 360
        reader.key("t")
        reader.wait_for("location.pathname === '/trends' && document.readyState === 'complete'")
        assert reader.value(SHOWN) == 1 and reader.faults == []
