package nodes

import (
	"fmt"
	"os"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/internal/ownthread"
	"github.com/weft-sdn/weft/lab/layout"
	"github.com/weft-sdn/weft/lab/machine"
)

// What runs in a host finds the lab's hosts and nodes by name: it has a mount namespace
// of its own, in which a file of the lab lies on /etc/hosts, if there is such a file.

// Hosts are the hosts of a lab, and what runs in them.
type Hosts struct{ *layout.Lab }

func HostsOf(s *layout.Lab) Hosts { return Hosts{s} }

// EnterSpace moves this thread, which must be locked and do nothing else any more, to
// where a host or switch is: its network namespace, mounts with the lab's names, and
// its CPUs.
func (s Hosts) EnterSpace(space, host string) error {
	ns, err := netns.GetFromPath(machine.NetnsPath(space))
	if err != nil {
		return fmt.Errorf("enter host %s: %w", host, err)
	}
	defer ns.Close()
	err = unix.Unshare(unix.CLONE_NEWNS)
	if err == nil { // what is unmounted outside goes here, too, what is mounted here stays here
		err = unix.Mount("", "/", "", unix.MS_SLAVE|unix.MS_REC, "")
	}
	if _, none := os.Stat("/etc/hosts"); err == nil && none == nil {
		err = unix.Mount(s.NamesFile(), "/etc/hosts", "", unix.MS_BIND, "")
	}
	if err != nil {
		return fmt.Errorf("enter host %s: mount %s at /etc/hosts: %w", host, s.NamesFile(), err)
	}
	if err := netns.Set(ns); err != nil {
		return fmt.Errorf("enter host %s: %w", host, err)
	}
	if h, ok := s.Topology.HostByName(host); ok && len(h.CPUs) > 0 {
		if err := machine.Confine(h.CPUs); err != nil {
			return fmt.Errorf("enter host %s: %w", host, err)
		}
	}
	return nil
}

// InHost runs fn, which starts a process, on a thread of its own in a host.
func (s Hosts) InHost(host string, fn func() error) error {
	return s.InSpace(machine.HostNetns(s.Name, host), host, fn)
}

// InSpace is inHost for a host or switch in a namespace of that name.
func (s Hosts) InSpace(space, host string, fn func() error) error {
	return ownthread.Do(func() error {
		if err := s.EnterSpace(space, host); err != nil {
			return err
		}
		return fn()
	})
}
