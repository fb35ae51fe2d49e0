from __future__ import annotations

from zenlake.http.users import User
from zenlake.keys.asker import named_asker
from zenlake.routing.policy.policy import Policy


def test_a_user_is_one_asker_wherever_it_comes_from() -> None:
    ada, bob = User("ada", Policy), User("bob", Policy)
    assert ada.asker("10.0.0.1") == User("ada", Policy).asker("10.0.0.2") != bob.asker("10.0.0.1")
    assert "ada" not in ada.asker("10.0.0.1")


def test_without_users_an_address_is_an_asker() -> None:
    anybody = User(None, Policy)
    assert anybody.asker("10.0.0.1") != anybody.asker("10.0.0.2")
    # Who has one address of a network of IPv6 has all of it.
    assert anybody.asker("2001:db8::1") == anybody.asker("2001:db8::2")
    # Nobody is called like an address.
    assert User("at 10.0.0.1", Policy).asker("") != anybody.asker("10.0.0.1")


def test_a_query_names_the_user_and_nobody_else() -> None:
    ada = User("ada", Policy)
    said = ada.restricted("@lake/sql", "_asker=bob;_sql=SELECT 1", "10.0.0.1")
    assert said == f"_asker={ada.asker('')};_sql=SELECT 1"
    assert named_asker(ada.restricted("robot/1", "_asker=bob", "10.0.0.1")) == ""
