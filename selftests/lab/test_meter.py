"""Meters: a conversation in SCPI over TCP, sensors in a folder, and the latter over a real SSH."""

import shlex

import pytest
import yaml
from labgrid import Target

from evmperf.benchmarks.tools import meter
from evmperf.lab.meter import HwmonMeter, HwmonMeterDriver, RailMeterDriver, ScpiMeter, ScpiMeterDriver
from evmperf.model.errors import LabError, RefusedOutput
from selftests.support.instrument import IDENTITY, OVERLOAD, Instrument, scpi
from selftests.support.ports import free_port

VALUES = {"VOLT": 0.75, "CURR": 0.004}


@pytest.fixture
def instrument():
    instrument = Instrument(lambda quantity, channel: scpi(VALUES[quantity] * channel))
    yield instrument
    instrument.close()


@pytest.fixture
def opened():
    """A function that makes a meter of a resource and its driver, and reaches it."""
    targets = []

    def open_one(resource, driver, **words):
        targets.append(Target("main"))
        resource(targets[-1], "meter", **words)
        driver(targets[-1], "meter")
        return targets[-1].get_driver(RailMeterDriver)

    yield open_one
    for target in targets:
        target.cleanup()


@pytest.fixture
def conversation(opened, instrument):
    """A function that opens a conversation with these rails."""
    usual = {"visa": instrument.visa, "timeout": 0.5}
    return lambda rails, **words: opened(ScpiMeter, ScpiMeterDriver, rails=rails, **usual | words)


@pytest.fixture
def hwmon(opened):
    """A function that opens sensors of a folder."""
    return lambda root, rails, **words: opened(
        HwmonMeter, HwmonMeterDriver, rails=rails, root=str(root), **words
    )


def log_of(reading):
    """The log of one sweep."""
    return meter.parse(meter.write(0.1, 2.0, [(1.0, rail, *two) for rail, two in reading.items()]))


# SCPI


def test_an_instrument_says_who_it_is_and_what_it_measures(conversation, instrument):
    back = conversation({"vdd_core": 1, "vdd_rtc": "2"})
    assert back.identity() == f"{IDENTITY} (SCPI)"
    log = log_of(back.read(["vdd_rtc", "vdd_core"]))
    assert (log.voltage("vdd_core"), log.power("vdd_core")) == pytest.approx((0.75, 3.0))
    assert (log.voltage("vdd_rtc"), log.power("vdd_rtc")) == pytest.approx((1.5, 12.0))
    assert instrument.asked[1:3] == ["MEAS:VOLT? (@2)", "MEAS:CURR? (@2)"]


def test_a_rail_may_have_queries_of_its_own_and_a_setup_is_sent_first(conversation, instrument):
    own = {"channel": 7, "voltage": "MEASURE:VOLT:DC? (@{channel})"}
    back = conversation({"a": own, "b": 2}, setup="CURR:RANG 0.01,(@7)", current="MEAS:CURR? (@3)")
    assert set(back.read(["a", "b"])) == {"a", "b"}
    assert instrument.asked == [
        "*IDN?",
        "CURR:RANG 0.01,(@7)",
        "MEASURE:VOLT:DC? (@7)",
        "MEAS:CURR? (@3)",
        "MEAS:VOLT? (@2)",
        "MEAS:CURR? (@3)",
    ]


def test_no_answer_and_a_lost_connection_are_a_broken_lab(conversation, instrument):
    back = conversation({"a": 3})
    instrument.measure = lambda quantity, channel: None
    with pytest.raises(LabError, match=r"does not answer 'MEAS:VOLT\? \(@3\)'.*its channels"):
        back.read(["a"])

    def hang_up(quantity, channel):
        raise ConnectionResetError

    instrument.measure = hang_up
    with pytest.raises(LabError, match=rf"the meter at {instrument.visa} does not answer"):
        back.read(["a"])
    instrument.close()
    with pytest.raises(LabError, match=instrument.visa):
        back.read(["a"])


def test_an_instrument_that_is_not_there_is_named(conversation):
    port = free_port()
    with pytest.raises(LabError, match=rf"::{port}::SOCKET does not answer .*refused.*`visa` of ScpiMeter"):
        conversation({"a": 1}, visa=f"TCPIP::127.0.0.1::{port}::SOCKET")
    with pytest.raises(LabError, match="nonsense cannot be reached"):
        conversation({"a": 1}, visa="nonsense")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (OVERLOAD, "overloaded on a"),
        ("9.91E37", "overloaded on a"),
        ("-9.9e37", "overloaded on a"),
        ("nan", "no reading"),
        ("", "no reading"),
        ('-113,"Undefined header"', "no reading"),
        ("7.5E-01,7.6E-01", "no reading"),
        ("\xff\x00\x07", "no reading"),
        ("0.75 mV", "no reading"),
    ],
)
def test_an_answer_that_is_no_reading_is_refused(conversation, instrument, answer, reason):
    back = conversation({"a": 1})
    instrument.measure = lambda quantity, channel: answer
    with pytest.raises(RefusedOutput, match=reason):
        log_of(back.read(["a"]))


def test_a_rail_without_a_channel_or_with_an_unknown_word_is_named(conversation):
    with pytest.raises(LabError, match="rail a names no channel"):
        conversation({"a": {"voltage": "READ?"}})
    with pytest.raises(LabError, match="rail a says chanel"):
        conversation({"a": {"chanel": 1}})


# hwmon


def sensor(root, number, *, name="ina226", label="", device="", **inputs):
    folder = root / f"hwmon{number}"
    folder.mkdir(parents=True)
    (folder / "name").write_text(f"{name}\n")
    if label:
        (folder / "label").write_text(f"{label}\n")
    if device:
        (folder / "device").symlink_to(f"../../{device}")
    for file, value in inputs.items():
        (folder / f"{file}_input").write_text(f"{value}\n")


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "hwmon tree"
    sensor(root, 0, name="acpitz", temp1=50000)
    sensor(root, 1, label="vdd_core", device="1-0040", in0=1, in1=751, curr1=7, power1=5000)
    sensor(root, 2, device="1-0041", in1=1800, curr1=0, in2=3290, power1=12)
    return root


HERE = {
    "vdd_core": "vdd_core",
    "vdd_rtc": {"device": "1-0041", "name": "ina226", "power": True},
    "vdd_3v3": {"device": "1-0041", "input": 2},
}


def test_sensors_are_found_by_label_name_and_device(hwmon, root):
    back = hwmon(root, HERE)
    assert back.identity() == "acpitz, ina226 on this machine (hwmon)"
    assert back.read(list(HERE)) == {
        "vdd_core": ("751 mV", "7 mA"),
        "vdd_rtc": ("1800 mV", "12 uW"),
        "vdd_3v3": ("3290 mV", "0 mA"),
    }
    log = log_of(back.read(["vdd_core", "vdd_rtc"]))
    assert log.power("vdd_core") == pytest.approx(0.751 * 7)
    assert log.power("vdd_rtc") == pytest.approx(0.012)
    assert log.voltage("vdd_rtc") == pytest.approx(1.8)


@pytest.mark.parametrize(
    ("given_as", "reason"),
    [
        ("vdd_croe", "'vdd_croe' of a fits 0 sensors .*vdd_core ina226 1-0040"),
        ({"name": "ina226"}, "fits 2 sensors"),
        ({"labl": "x"}, "give its label, name or device"),
        ({"power": True}, "give its label, name or device"),
    ],
)
def test_a_sensor_that_is_not_one_is_named_with_those_there_are(hwmon, root, given_as, reason):
    with pytest.raises(LabError, match=reason):
        hwmon(root, {"a": given_as})


def test_a_sensor_that_goes_away_is_a_broken_lab(hwmon, root):
    back = hwmon(root, HERE)
    (root / "hwmon1" / "curr1_input").unlink()
    with pytest.raises(LabError, match=r"cannot be read: .*curr1_input"):
        back.read(list(HERE))


def test_sensors_of_another_machine_are_read_over_ssh(hwmon, sshd, root):
    back = hwmon(root, HERE, host="127.0.0.1", ssh_options=shlex.join(sshd.options))
    assert back.identity() == "acpitz, ina226 on 127.0.0.1 (hwmon)"
    assert back.read(["vdd_core"]) == {"vdd_core": ("751 mV", "7 mA")}
    (root / "hwmon1" / "in1_input").unlink()
    with pytest.raises(LabError, match=r"sensors on 127\.0\.0\.1 cannot be read"):
        back.read(["vdd_core"])


def test_a_machine_that_does_not_let_us_in_is_a_broken_lab(hwmon, sshd, root):
    (sshd.folder / "authorized").write_text("")
    with pytest.raises(LabError, match=r"which has .*, cannot be reached: .*denied"):
        hwmon(root, HERE, host="127.0.0.1", ssh_options=shlex.join(sshd.options))


# Labgrid


def test_labgrid_gives_an_instrument_with_the_rails_as_a_coordinator_passes_them_on(conversation):
    driver = conversation(yaml.safe_dump({"vdd_core": 1, "vdd_rtc": {"channel": 2}}))
    assert driver.identity() == f"{IDENTITY} (SCPI)"
    driver.check(["vdd_core", "vdd_rtc"])
    with pytest.raises(LabError, match=r"vdd_mcu, x: .*`rails` of Scpi"):
        driver.check(["vdd_core", "vdd_mcu", "x"])
    assert log_of(driver.read(["vdd_core"])).power("vdd_core") == pytest.approx(3.0)


@pytest.mark.parametrize("rails", ["", "vdd_core", "[1, 2]", "a: [", {}, 5])
def test_rails_that_are_no_mapping_are_refused(rails):
    with pytest.raises(ValueError, match="rails must map"):
        ScpiMeter(Target("main"), "meter", rails=rails, visa="x")
