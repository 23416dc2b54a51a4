package machine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// The kernel keeps one table of IPv4 and one of IPv6 neighbours for all
// namespaces together, of 1024 entries by default. When thirty or
// so hosts of a lab have all spoken to each other it is full, and every host
// of the machine gets ENOBUFS. So the first large lab raises the limits, and
// the last lab to go puts them back.

const (
	crowd         = 24 // hosts that fit the default limits, with room for others
	neighbourFile = ".neighbour-limits"
	fewNeighbours = 65_536  // below this the kernel need not hurry to collect
	maxNeighbours = 131_072 // the limit
)

func neighbourLimits() []string {
	return []string{
		"net/ipv4/neigh/default/gc_thresh3", "net/ipv4/neigh/default/gc_thresh2",
		"net/ipv6/neigh/default/gc_thresh3", "net/ipv6/neigh/default/gc_thresh2",
	}
}

// RaiseNeighbourLimits makes room for the neighbours of a lab with this many
// hosts. Where the machine does not let it, as in some containers, it leaves
// things as they are.
func RaiseNeighbourLimits(hosts int) error {
	if hosts <= crowd {
		return nil
	}
	was := map[string]string{}
	for _, path := range neighbourLimits() {
		b, err := os.ReadFile("/proc/sys/" + path)
		if err != nil {
			return nil
		}
		was[path] = strings.TrimSpace(string(b))
	}
	b, err := json.Marshal(was)
	if err != nil {
		return err
	}
	file := filepath.Join(RunDir, neighbourFile)
	draft := file + "-" + strconv.Itoa(os.Getpid())
	defer os.Remove(draft)
	if err := os.WriteFile(draft, b, 0o600); err != nil {
		return fmt.Errorf("remember the neighbour limits: %w", err)
	}
	if err := os.Link(draft, file); errors.Is(err, fs.ErrExist) {
		return nil // raised by another lab
	} else if err != nil {
		return fmt.Errorf("remember the neighbour limits: %w", err)
	}
	for _, path := range neighbourLimits() {
		to := maxNeighbours
		if strings.HasSuffix(path, "2") {
			to = fewNeighbours
		}
		if n, err := strconv.Atoi(was[path]); err == nil && n < to {
			if err := Sysctl(path, strconv.Itoa(to)); err != nil {
				return err
			}
		}
	}
	return nil
}

// RestoreNeighbourLimits puts the limits back if no lab is left.
func RestoreNeighbourLimits() error {
	names, err := Names()
	if err != nil || len(names) > 0 {
		return err
	}
	file := filepath.Join(RunDir, neighbourFile)
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var was map[string]string
	if err == nil {
		err = json.Unmarshal(b, &was)
	}
	if err != nil {
		return fmt.Errorf("restore the neighbour limits: %w", err)
	}
	for path, value := range was {
		if err := Sysctl(path, value); err != nil {
			return err
		}
	}
	if err := os.Remove(file); !errors.Is(err, fs.ErrNotExist) {
		return err
	} // else another lab that was the last, too, has restored them
	return nil
}
