package supervisor

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Process is a process that is to run.
type Process struct {
	Name string   // unique; letters, digits, dot, dash and underscore
	Path string   // of the executable, absolute
	Args []string // without the name of the program
	// Env is added to the supervisor's environment, as KEY=value; of two with one
	// KEY the last counts. Only Env counts as a difference: a supervisor started
	// with another environment leaves what it adopts as it is.
	Env []string

	Nice int // -20 (first) to 19 (last)
	// RealTime asks for SCHED_RR, priority 1. Where that is not allowed the
	// process runs with Nice.
	RealTime bool
	CPUs     string // the CPUs it may use, such as "0" or "0-1,3"; "" means the supervisor's
	Memory   int64  // limit in bytes, swap included; 0 means none
	// CPUQuota is the share of a processor that it may use; 0 means no limit.
	CPUQuota float64
}

func (p Process) clone() Process {
	p.Args, p.Env = slices.Clone(p.Args), slices.Clone(p.Env)
	return p
}

// hash names what cannot be changed of a running process.
func (p Process) hash() string {
	h := sha256.New()
	field := func(kind string, values ...string) {
		for _, v := range values {
			fmt.Fprintf(h, "%s %d ", kind, len(v))
			io.WriteString(h, v)
		}
	}
	field("path", p.Path)
	field("arg", p.Args...)
	env := merged(p.Env)
	slices.Sort(env)
	field("env", env...)
	return hex.EncodeToString(h.Sum(nil))
}

// merged returns an environment in which each key is there once, with its last
// value.
func merged(env ...[]string) []string {
	var list []string
	at := map[string]int{}
	for _, v := range slices.Concat(env...) {
		key, _, _ := strings.Cut(v, "=")
		if i, ok := at[key]; ok {
			list[i] = v
			continue
		}
		at[key] = len(list)
		list = append(list, v)
	}
	return list
}

// limits are those parts of a Process that can be changed while it runs.
type limits struct {
	Nice     int     `json:"nice"`
	RealTime bool    `json:"realTime"`
	CPUs     string  `json:"cpus"`
	Memory   int64   `json:"memory"`
	CPUQuota float64 `json:"cpuQuota,omitempty"`
}

func (p Process) limits() limits { return limits{p.Nice, p.RealTime, p.CPUs, p.Memory, p.CPUQuota} }

// grouped reports whether a process with these limits needs a cgroup.
func (l limits) grouped() bool { return l.Memory > 0 || l.CPUQuota > 0 }

// minMemory is the least that a process can be started with.
const minMemory = 1 << 20

// The bounds of a quota.
const (
	minQuota = 0.01
	maxQuota = 4096
)

var processName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// check reports all mistakes in a list.
func check(list []Process) error {
	names := map[string]bool{}
	var errs []error
	for i, p := range list {
		wrong := func(format string, args ...any) {
			errs = append(errs, fmt.Errorf("process %s: "+format, append([]any{p.Name}, args...)...))
		}
		switch {
		case p.Name == "":
			errs = append(errs, fmt.Errorf("process %d of the list has no name", i+1))
		case !processName.MatchString(p.Name):
			wrong("the name may have up to 64 letters, digits, dots, dashes and underscores, and begins with a letter or digit")
		case names[p.Name]:
			wrong("listed twice")
		}
		names[p.Name] = true
		if !filepath.IsAbs(p.Path) {
			wrong("path %q of the executable is not absolute", p.Path)
		}
		if p.Nice < -20 || p.Nice > 19 {
			wrong("nice %d; allowed: -20 to 19", p.Nice)
		}
		if _, err := parseCPUs(p.CPUs); err != nil {
			wrong("%w", err)
		}
		if p.Memory != 0 && p.Memory < minMemory {
			wrong("memory limit of %d bytes; allowed: 0 (none), or 1 MiB and more", p.Memory)
		}
		if err := checkQuota(p.CPUQuota); err != nil {
			wrong("%w", err)
		}
	}
	return errors.Join(errs...)
}

func checkQuota(share float64) error {
	if share != 0 && !(share >= minQuota && share <= maxQuota) {
		return fmt.Errorf("quota of %v processors; allowed: 0 (none), or %v to %v", share, minQuota, maxQuota)
	}
	return nil
}
