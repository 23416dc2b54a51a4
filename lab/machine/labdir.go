package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// RunDir is where every lab that is up, or half up, has its directory.
const RunDir = "/run/weft/lab"

func Dir(name string) string { return filepath.Join(RunDir, name) }

// Names lists the labs of this machine, half made and broken ones included.
func Names() ([]string, error) {
	entries, err := os.ReadDir(RunDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", filepath.Clean(RunDir), err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// LabNetns lists the existing namespaces of a lab, by their names.
func LabNetns(lab string) []string { return AllNetns()[lab] }

// AllNetns lists the existing namespaces of each lab, by their names.
func AllNetns() map[string][]string {
	entries, err := os.ReadDir(netnsDir)
	if err != nil {
		return nil
	}
	names := map[string][]string{}
	for _, e := range entries {
		if rest, ok := strings.CutPrefix(e.Name(), SwitchNetns("")); ok {
			lab, _, _ := strings.Cut(rest, ".")
			names[lab] = append(names[lab], e.Name())
		}
	}
	return names
}

// SwitchNetns is the namespace in which a lab's Open vSwitch runs. A lab's
// name has no dot, so no two labs share a namespace's name.
func SwitchNetns(lab string) string { return "weft-" + lab }

func HostNetns(lab, host string) string { return "weft-" + lab + "." + host }

// Lock takes the lock under which a lab's links are changed; closing the
// file releases it.
func Lock(name string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(Dir(name), "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("lab %s: %w", name, ErrNoLab)
	}
	if err != nil {
		return nil, fmt.Errorf("lock lab %s: %w", name, err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock lab %s: %w", name, err)
	}
	return f, nil
}

// ErrNoLab is wrapped by errors about a lab that is not up.
var ErrNoLab = errors.New("no such lab is up; see `weft lab list`")

// RemoveIfEmpty removes the directories above the labs once none is left.
func RemoveIfEmpty(dir string) {
	if os.Remove(dir) == nil {
		os.Remove(filepath.Dir(dir))
	}
}
