package bench

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/internal/ownthread"
)

// coldHost is a host that takes a new Ethernet and IPv4 address for each run:
// to the network it is a host that nobody has heard of.
type coldHost struct{ netns string }

// The addresses of the n-th new host, n from 1.
func coldMAC(n int) net.HardwareAddr {
	return net.HardwareAddr{0x02, 0xbe, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}
}

func coldIP(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 99, byte(n >> 8), byte(n)}) }

// within runs f on a thread in the host's namespace.
func (h coldHost) within(f func() error) error {
	return ownthread.Do(func() error {
		ns, err := netns.GetFromName(h.netns)
		if err != nil {
			return fmt.Errorf("network namespace %s: %w", h.netns, err)
		}
		defer ns.Close()
		if err := netns.Set(ns); err != nil {
			return fmt.Errorf("enter network namespace %s: %w", h.netns, err)
		}
		return f()
	})
}

// quiet turns IPv6 off, whose chatter would be heard.
func (h coldHost) quiet() error {
	return h.within(func() error { return os.WriteFile("/proc/sys/net/ipv6/conf/all/disable_ipv6", []byte("1"), 0) })
}

// become gives the host the n-th addresses in place of those it has; what it
// knew of its neighbours is forgotten.
func (h coldHost) become(n int) error {
	return h.within(func() error {
		link, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		had, err := netlink.AddrList(link, netlink.FAMILY_V4)
		if err != nil {
			return err
		}
		for i := range had {
			if err := netlink.AddrDel(link, &had[i]); err != nil {
				return err
			}
		}
		if err := netlink.LinkSetHardwareAddr(link, coldMAC(n)); err != nil {
			return err
		}
		return netlink.AddrAdd(link, &netlink.Addr{IPNet: &net.IPNet{IP: coldIP(n).AsSlice(), Mask: net.CIDRMask(16, 32)}})
	})
}

// errNoAnswer says that no answer came.
var errNoAnswer = errors.New("no answer")

// ping sends one ICMP echo request and returns how long its answer took.
func (h coldHost) ping(from, to netip.Addr, wait time.Duration) (rtt time.Duration, err error) {
	err = h.within(func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.IPPROTO_ICMP)
		if err != nil {
			return fmt.Errorf("open an ICMP socket: %w", err)
		}
		defer unix.Close(fd)
		if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: from.As4()}); err != nil {
			return fmt.Errorf("bind to %v: %w", from, err)
		}
		limit := unix.NsecToTimeval(wait.Nanoseconds())
		if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit); err != nil {
			return err
		}
		request := make([]byte, 64)
		request[0] = 8 // echo request; the kernel fills in identifier and checksum
		binary.BigEndian.PutUint16(request[6:], 1)
		answer := make([]byte, 128)
		began := time.Now()
		if err := unix.Sendto(fd, request, 0, &unix.SockaddrInet4{Addr: to.As4()}); err != nil {
			return fmt.Errorf("send to %v: %w", to, err)
		}
		for {
			n, _, err := unix.Recvfrom(fd, answer, 0)
			rtt = time.Since(began)
			switch {
			case err == unix.EINTR:
			case err == unix.EAGAIN || err == unix.EHOSTUNREACH:
				return errNoAnswer
			case err != nil:
				return fmt.Errorf("receive from %v: %w", to, err)
			case n >= 8 && answer[0] == 0:
				return nil
			}
		}
	})
	return rtt, err
}
