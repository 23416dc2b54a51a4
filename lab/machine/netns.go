package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/internal/ownthread"
)

// netnsDir is where ip-netns(8) keeps named namespaces.
const netnsDir = "/run/netns"

func NetnsPath(name string) string { return filepath.Join(netnsDir, name) }

// PrepareNetnsDir makes netnsDir a shared mount point as ip-netns(8) does, so
// that a namespace deleted here is gone in every mount namespace.
func (h Home) PrepareNetnsDir() error {
	if err := h.checkMounts(); err != nil {
		return err
	}
	return h.do(func() error {
		if err := os.MkdirAll(netnsDir, 0o755); err != nil {
			return fmt.Errorf("make %s: %w", netnsDir, err)
		}
		err := unix.Mount("", netnsDir, "none", unix.MS_SHARED|unix.MS_REC, "")
		if errors.Is(err, unix.EINVAL) { // not a mount point yet
			if err = unix.Mount(netnsDir, netnsDir, "none", unix.MS_BIND|unix.MS_REC, ""); err == nil {
				err = unix.Mount("", netnsDir, "none", unix.MS_SHARED|unix.MS_REC, "")
			}
		}
		if err != nil {
			return fmt.Errorf("make %s a shared mount: %w", netnsDir, err)
		}
		return nil
	})
}

// onThread runs fn on a thread of its own whose namespace fn may change; the
// thread goes on only if its namespace can be restored.
func onThread(fn func() error) error {
	return ownthread.Do(func() error {
		home, err := netns.Get()
		if err != nil {
			return fmt.Errorf("open this thread's network namespace: %w", err)
		}
		defer home.Close()
		err = fn()
		if netns.Set(home) == nil {
			runtime.UnlockOSThread()
		}
		return err
	})
}

// InNetns runs fn on a thread in the named namespace. Processes and sockets
// made by fn belong to it.
func InNetns(name string, fn func() error) error {
	return onThread(func() error {
		ns, err := netns.GetFromPath(NetnsPath(name))
		if err != nil {
			return fmt.Errorf("open network namespace %s: %w", name, err)
		}
		defer ns.Close()
		if err := netns.Set(ns); err != nil {
			return fmt.Errorf("enter network namespace %s: %w", name, err)
		}
		return fn()
	})
}

// CreateNetns makes the named namespace and runs fn in it.
func (h Home) CreateNetns(name string, fn func() error) error {
	return onThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("create network namespace %s: %w", name, err)
		}
		ns, err := netns.Get()
		if err != nil {
			return fmt.Errorf("create network namespace %s: %w", name, err)
		}
		defer ns.Close()
		if err := h.nameNetns(name, ns); err != nil {
			return err
		}
		return fn()
	})
}

// nameNetns gives a namespace its name, which must be new.
func (h Home) nameNetns(name string, ns netns.NsHandle) error {
	path := NetnsPath(name)
	err := h.do(func() error {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDONLY, 0o444)
		if err != nil {
			return err
		}
		f.Close()
		return unix.Mount(fmt.Sprintf("/proc/self/fd/%d", ns), path, "none", unix.MS_BIND, "")
	})
	if err != nil {
		return fmt.Errorf("name network namespace %s: %w", name, err)
	}
	var made unix.Stat_t
	if err := unix.Fstat(int(ns), &made); err != nil {
		return fmt.Errorf("name network namespace %s: %w", name, err)
	}
	if in, ok := InodeOf(path); !ok || in != (Inode{made.Dev, made.Ino}) {
		return errHiddenMounts
	}
	return nil
}

// DeleteNetns removes a named namespace, if there is one.
func (h Home) DeleteNetns(name string) error {
	path := NetnsPath(name)
	unmount := func() {
		for unix.Unmount(path, unix.MNT_DETACH) == nil { // more than one mount may lie on it
		}
	}
	unmount()
	return h.do(func() error {
		unmount()
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("delete network namespace %s: %w", name, err)
		}
		return nil
	})
}

// WithLinks runs fn in the named namespace with a netlink handle on it.
func WithLinks(ns string, fn func(*netlink.Handle) error) error {
	return InNetns(ns, func() error { return WithHandle(fn) })
}

// WithHandle runs fn with a netlink handle on this thread's namespace.
func WithHandle(fn func(*netlink.Handle) error) error {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("open netlink: %w", err)
	}
	defer h.Close()
	return fn(h)
}

// ListWhole asks for a list again that changes have interrupted, which then may lack
// what has been there all the time.
func ListWhole[T any](list func() ([]T, error)) (all []T, err error) {
	for range 100 {
		if all, err = list(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			return all, err
		}
	}
	return nil, err
}

// Sysctl sets a value of this thread's namespace.
func Sysctl(path, value string) error {
	if err := os.WriteFile("/proc/sys/"+path, []byte(value), 0o644); err != nil {
		return fmt.Errorf("set sysctl %s: %w", path, err)
	}
	return nil
}
