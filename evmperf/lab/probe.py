"""A board's reset over its debug probe."""

import attr
from labgrid.driver.common import Driver
from labgrid.factory import target_factory
from labgrid.protocol import ResetProtocol
from labgrid.step import step


@target_factory.reg_driver
@attr.s(eq=False)
class OpenOcdResetDriver(Driver, ResetProtocol):  # type: ignore[misc]
    """Asserts the SRST line of a probe for `delay` seconds, by Labgrid's OpenOCDDriver, whose
    configuration must have a `reset_config` with `srst_only` or the like.
    """

    bindings = {"openocd": "OpenOCDDriver"}  # noqa: RUF012  # Labgrid's form

    delay: float = attr.ib(default=0.2, validator=attr.validators.instance_of(float))

    @Driver.check_active  # type: ignore[untyped-decorator]
    @step()  # type: ignore[untyped-decorator]
    def reset(self) -> None:
        """Reset the board; raises CalledProcessError with what OpenOCD says."""
        hold = f"sleep {round(self.delay * 1000)}"
        self.openocd.execute(["init", "adapter assert srst", hold, "adapter deassert srst", "shutdown"])
