package machine

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// EthtoolSocket opens a socket for ethtool requests in this thread's namespace.
func EthtoolSocket() (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open a socket for ethtool: %w", err)
	}
	return fd, nil
}

// Ethtool makes a request with one value, on an interface of the socket's
// namespace.
func Ethtool(socket int, iface string, command, value uint32) error {
	data := struct{ cmd, data uint32 }{command, value}
	request := struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}{data: unsafe.Pointer(&data)}
	copy(request.name[:unix.IFNAMSIZ-1], iface)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(socket), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request)))
	if errno != 0 {
		return errno
	}
	return nil
}

// DisableTxOffload turns transmit checksum offload off, and with it
// segmentation offload: `ethtool -K IFACE tx off`.
func DisableTxOffload(iface string) error {
	fd, err := EthtoolSocket()
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := Ethtool(fd, iface, unix.ETHTOOL_STXCSUM, 0); err != nil {
		return fmt.Errorf("turn transmit offload of %s off: %w", iface, err)
	}
	return nil
}
