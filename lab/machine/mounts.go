package machine

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/internal/ownthread"
)

// The names of network namespaces are mounts. A process may run among mounts
// of its own (ip-netns(8) exec makes such a mount namespace, and so does
// systemd for some services): what it mounts there, nobody else sees. The lab
// therefore mounts in its home, the mount namespace that its user works in.

// Home is a mount namespace in which labs keep the names of their namespaces.
type Home struct {
	file *os.File // nil: that of this process
}

// FindHome returns the mount namespace of the outermost ancestor of this
// process that has the same /run. Close it after use.
func FindHome() (Home, error) {
	here, _ := InodeOf("/proc/self/ns/mnt")
	run, _ := InodeOf("/run")
	outermost := ""
	for pid := os.Getppid(); pid > 0; pid = parentOf(pid) {
		dir := filepath.Join("/proc", strconv.Itoa(pid))
		if other, ok := InodeOf(filepath.Join(dir, "root/run")); !ok || other != run {
			break
		}
		outermost = filepath.Join(dir, "ns/mnt")
	}
	if in, ok := InodeOf(outermost); !ok || in == here {
		return Home{}, nil
	}
	f, err := os.Open(outermost)
	if err != nil {
		return Home{}, fmt.Errorf("open the mount namespace of the calling shell: %w", err)
	}
	return Home{f}, nil
}

func (h Home) Close() {
	if h.file != nil {
		h.file.Close()
	}
}

// do runs fn among the mounts of the home.
func (h Home) do(fn func() error) error {
	if h.file == nil {
		return fn()
	}
	return ownthread.Do(func() error {
		err := unix.Unshare(unix.CLONE_FS)
		if err == nil {
			err = unix.Setns(int(h.file.Fd()), unix.CLONE_NEWNS)
		}
		if err != nil {
			return fmt.Errorf("enter the mount namespace of the calling shell: %w", err)
		}
		return fn()
	})
}

// errHiddenMounts says that the names of a lab's namespaces would be seen by
// this process only, or not even by it.
var errHiddenMounts = errors.New("this process has a mount namespace of its own, in which no other process would see the lab: " +
	"run weft lab outside it; to reach a controller in network namespace NS, use `nsenter --net=/run/netns/NS weft lab up …` instead of `ip netns exec`")

// checkMounts refuses to mount where nobody else would see it: this process
// has copies of another namespace's mounts, and no ancestor that has them.
func (h Home) checkMounts() error {
	if h.file != nil {
		return nil
	}
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return fmt.Errorf("read this process's mounts: %w", err)
	}
	defer f.Close()
	deepest, slave := "", false
	for lines := bufio.NewScanner(f); lines.Scan(); {
		// ID PARENT DEV ROOT POINT OPTIONS [OPTIONAL…] - TYPE SOURCE OPTIONS, proc(5)
		before, _, _ := strings.Cut(lines.Text(), " - ")
		fields := strings.Fields(before)
		if len(fields) < 6 {
			continue
		}
		point := fields[4]
		if inside(netnsDir, point) && len(point) >= len(deepest) {
			deepest = point
			slave = strings.Contains(strings.Join(fields[6:], " "), "master:")
		}
	}
	if slave {
		return errHiddenMounts
	}
	return nil
}

// inside reports whether a path is a directory or below it.
func inside(path, dir string) bool {
	return dir == "/" || path == dir || strings.HasPrefix(path, dir+"/")
}
