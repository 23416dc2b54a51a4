package links

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/lab/layout"
	"github.com/weft-sdn/weft/lab/machine"
)

// tap is an open TAP device; it is gone when closed.
type tap struct {
	fd     int
	socket int // for ethtool, in the device's namespace
	name   string
}

func (t tap) close() {
	unix.Close(t.fd)
	unix.Close(t.socket)
}

// openTap makes a TAP device in the end's namespace.
func openTap(e *layout.End) (tap, error) {
	t := tap{fd: -1, name: e.Iface}
	err := machine.InNetns(e.Netns, func() error {
		fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("open /dev/net/tun: %w", err)
		}
		req, err := unix.NewIfreq(e.Iface)
		if err != nil {
			unix.Close(fd)
			return fmt.Errorf("make TAP device %s: %w", e.Iface, err)
		}
		req.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
		if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, req); err != nil {
			unix.Close(fd)
			return fmt.Errorf("make TAP device %s: %w", e.Iface, err)
		}
		if t.socket, err = machine.EthtoolSocket(); err != nil {
			unix.Close(fd)
			return err
		}
		t.fd = fd
		return nil
	})
	return t, err
}

// setCarrier plugs the device in or out. The kernel would tell the world of a
// lost carrier up to a second later; being asked for it, it does at once.
func (t tap) setCarrier(up bool) error {
	on := int32(0)
	if up {
		on = 1
	}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(t.fd), unix.TUNSETCARRIER, uintptr(unsafe.Pointer(&on))); errno != 0 {
		return fmt.Errorf("set the carrier of %s: %w", t.name, errno)
	}
	if err := machine.Ethtool(t.socket, t.name, unix.ETHTOOL_GLINK, 0); err != nil {
		return fmt.Errorf("ask for the carrier of %s: %w", t.name, err)
	}
	return nil
}
