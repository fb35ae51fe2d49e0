"""Devices of 2018 beside nodes of 1.x in one simulated network."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from zenlake.testing.devices import BrokerHost
from zenlake.testing.network import Conditions, Network


@settings(max_examples=30)
@given(
    seed=st.integers(0, 1 << 30),
    loss=st.sampled_from([0.0, 0.2]),
    repeat=st.sampled_from([0.0, 0.2]),
)
def test_both_worlds_hear_each_other_in_any_weather(seed: int, loss: float, repeat: float) -> None:
    network = Network(Random(seed))
    one = network.node("one", mode="router")
    two = network.node("two", mode="router", connect=["one"])
    program = network.node("program", mode="client", connect=["two"])
    weather = Conditions(stream=False, loss=loss, repeat=repeat, jitter=0.01)
    sensor = BrokerHost(network, one, lease=0).device("sensor", weather, lease=0)
    display = BrokerHost(network, two, lease=0).device("display", weather, lease=0)
    heard = program.subscribe("house/**")
    network.run(20)
    display.subscribe("/house/*")
    publisher = sensor.publisher("/house/light")
    network.run(20)
    sent = [b"%d" % i for i in range(20)]
    for payload in sent:
        assert sensor.put(publisher, payload)
        network.run(0.05)
    network.run(20)
    assert [payload for _, payload in heard.values()] == sent
    assert [payload for _, payload in display.heard] == sent
    program.put("house/door", b"open")
    network.run(20)
    assert display.heard[-1] == ("house/door", b"open")
