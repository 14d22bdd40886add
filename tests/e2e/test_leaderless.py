"""A partition loses its leader: the broker that has its only replica is away, the others aren't."""

from __future__ import annotations

from pathlib import Path

import pytest
from kafka.admin import KafkaAdminClient, NewTopic

from lakesplice.testing.broker import LocalBroker
from lakesplice.testing.servers.process import java_command
from tests.support.ledgers import PARTITIONS, Ledger, send
from tests.support.running import Lake, ends_of, require_table, take_in
from tests.support.topics import Sender

DOWN_SECONDS_MAX = 120.0


@pytest.mark.nightly
def test_a_table_whose_topic_has_no_leader_rests_while_others_are_fed(
    own_broker: LocalBroker, broker_jars: list[Path], tmp_path: Path
) -> None:
    """The laws of the service's loop draw this with a simulated broker; what Kafka and Spark really
    do then, only a cluster of two shows.
    """
    led, leaderless = Ledger("leaders", "led"), Ledger("leaders", "leaderless")
    with LocalBroker(
        broker_jars, tmp_path / "second", joins=own_broker, java=java_command()
    ) as second:
        servers = own_broker.bootstrap_servers
        admin = KafkaAdminClient(bootstrap_servers=servers)
        for table, node in ((led, own_broker.node_id), (leaderless, second.node_id)):
            replicas = {number: [node] for number in range(PARTITIONS)}
            admin.create_topics([NewTopic(table.topic, -1, -1, replicas)])
        admin.close()
        lake = Lake(tmp_path / "lake", servers, r"leaders\..*")
        with lake.running() as service:
            take_in(
                service,
                lake,
                ends_of(send(Sender(servers), [*led.insert(0, 20), *leaderless.insert(0, 20)])),
            )
            second.kill()
            service.until(
                lambda: any("leader" in e["error"] for e in lake.said("table-not-opened")),
                "the leader is missed",
                DOWN_SECONDS_MAX,
            )
            take_in(service, lake, ends_of(send(Sender(servers), led.update(range(9), "alone"))))
            second.start()
            take_in(service, lake, ends_of(send(Sender(servers), leaderless.update(range(9), "x"))))
            for table in (led, leaderless):
                require_table(lake, table.topic, table.truth)
            service.terminate()
            service.ends_well()
