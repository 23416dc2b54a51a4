package measure

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Machine is what was measured on.
type Machine struct {
	Processor   string `json:"processor"`
	Cores       int    `json:"cores"`
	Kernel      string `json:"kernel"`
	MemoryBytes uint64 `json:"memory_bytes"`
}

// ThisMachine describes this one. What the system does not tell is empty.
func ThisMachine() Machine {
	m := Machine{Processor: runtime.GOARCH, Cores: runtime.NumCPU()}
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		lines := bufio.NewScanner(bytes.NewReader(text))
		for lines.Scan() {
			if name, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
				m.Processor = strings.TrimSpace(value)
				break
			}
		}
	}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		m.Kernel = unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:])
	}
	var s unix.Sysinfo_t
	if unix.Sysinfo(&s) == nil {
		m.MemoryBytes = uint64(s.Totalram) * uint64(s.Unit)
	}
	return m
}

// String is the machine in a line.
func (m Machine) String() string {
	return fmt.Sprintf("%d × %s, %.0f GiB, %s", m.Cores, m.Processor, float64(m.MemoryBytes)/(1<<30), m.Kernel)
}

// Conditions are what a measurement was taken under.
type Conditions struct {
	Date  time.Time `json:"date"`
	Build string    `json:"build"`
	// LoadBefore and LoadAfter are load averages over one minute.
	LoadBefore float64 `json:"load_before"`
	LoadAfter  float64 `json:"load_after"`
	// BusyBefore and BusyAfter are how much of all processors was in use, and
	// StealPercent how much the hypervisor gave to others while it was measured.
	BusyBefore   float64 `json:"busy_before_percent"`
	BusyAfter    float64 `json:"busy_after_percent"`
	StealPercent float64 `json:"steal_percent"`
	// Differs is everything that was set otherwise than a user gets it.
	Differs []string `json:"differs"`
	// Disturbed says why the machine was not to be measured on; empty if it was.
	// A disturbed measurement gives no verdict.
	Disturbed string `json:"disturbed,omitempty"`

	began ticks
}

// What is more than that disturbs a measurement, in percent of all processors.
const (
	mostBusy  = 20
	mostSteal = 5
)

// look is how long Begin looks at what the machine does.
const look = 500 * time.Millisecond

// Begin looks half a second at what the machine does before the measurement of
// a build begins. differs is everything that is set otherwise than a user gets
// it; what this process was given by whoever started it is added.
func Begin(build string, differs ...string) *Conditions {
	c := &Conditions{Date: time.Now().UTC().Truncate(time.Second), Build: build, Differs: []string{}, LoadBefore: load()}
	c.Also(differs...)
	c.Also(inherited()...)
	c.BusyBefore = busy()
	c.began = processors()
	if c.BusyBefore > mostBusy {
		c.Disturbed = fmt.Sprintf("%.0f %% of the processors were in use before it began", c.BusyBefore)
	}
	return c
}

// busy looks at how much of all processors is in use, in percent.
func busy() float64 {
	before := processors()
	time.Sleep(look)
	if d := processors().since(before); d.all > 0 {
		return percent(d.busy, d.all)
	}
	return 0
}

// Also notes what else was set otherwise than a user gets it; what is noted
// already, only once.
func (c *Conditions) Also(differs ...string) {
	for _, d := range differs {
		if !slices.Contains(c.Differs, d) {
			c.Differs = append(c.Differs, d)
		}
	}
}

// End is to be called when all has been measured, and what was measured has
// ended.
func (c *Conditions) End() {
	c.LoadAfter = load()
	d := processors().since(c.began)
	c.BusyAfter = busy()
	if c.BusyAfter > mostBusy && c.Disturbed == "" {
		c.Disturbed = fmt.Sprintf("%.0f %% of the processors were in use after it ended", c.BusyAfter)
	}
	if d.all > 0 {
		c.StealPercent = percent(d.steal, d.all)
	}
	if c.StealPercent > mostSteal && c.Disturbed == "" {
		c.Disturbed = fmt.Sprintf("the hypervisor gave %.0f %% of the processors to others", c.StealPercent)
	}
}

// After returns the conditions of a measurement that went on from an earlier
// one: what disturbed either disturbs both.
func (c Conditions) After(earlier Conditions) Conditions {
	c.Date, c.LoadBefore = earlier.Date, earlier.LoadBefore
	c.BusyBefore, c.BusyAfter, c.StealPercent = max(c.BusyBefore, earlier.BusyBefore), max(c.BusyAfter, earlier.BusyAfter), max(c.StealPercent, earlier.StealPercent)
	own := c.Differs
	c.Differs = slices.Clone(earlier.Differs)
	c.Also(own...)
	c.Disturbed = cmp.Or(earlier.Disturbed, c.Disturbed)
	return c
}

// String is the conditions in a line.
func (c Conditions) String() string {
	s := fmt.Sprintf("%s, build %s, load %.1f before and %.1f after, steal %.1f %%", c.Date.Format("2006-01-02 15:04 UTC"), c.Build, c.LoadBefore, c.LoadAfter, c.StealPercent)
	if len(c.Differs) > 0 {
		s += "; other than a user gets it: " + strings.Join(grouped(c.Differs), "; ")
	}
	if c.Disturbed != "" {
		s += "; disturbed, no verdict: " + c.Disturbed
	}
	return s
}

// grouped joins what differs alike: "a: x" and "b: x" are "x (a, b)".
func grouped(differs []string) (list []string) {
	of := map[string][]string{}
	var order []string
	for _, d := range differs {
		who, what, ok := strings.Cut(d, ": ")
		if !ok {
			who, what = "", d
		}
		if _, there := of[what]; !there {
			order = append(order, what)
		}
		if of[what] = append(of[what], who); who == "" {
			of[what] = nil
		}
	}
	for _, what := range order {
		if len(of[what]) > 0 {
			what += " (" + strings.Join(of[what], ", ") + ")"
		}
		list = append(list, what)
	}
	return list
}

func percent(part, all uint64) float64 {
	return math.Round(1000*float64(part)/float64(all)) / 10
}

// ticks is time of all processors since the start, in ticks of the clock.
type ticks struct{ busy, steal, all uint64 }

func (t ticks) since(before ticks) ticks {
	return ticks{busy: t.busy - before.busy, steal: t.steal - before.steal, all: t.all - before.all}
}

// processors reads the first line of /proc/stat (proc_stat(5)): user, nice,
// system, idle, iowait, irq, softirq, steal.
func processors() ticks {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return ticks{}
	}
	line, _, _ := strings.Cut(string(text), "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return ticks{}
	}
	var t ticks
	for i, field := range fields[1:9] {
		v, err := strconv.ParseUint(field, 10, 64)
		if err != nil {
			return ticks{}
		}
		t.all += v
		switch i {
		case 3, 4: // idle, iowait
		case 7:
			t.steal = v
		default:
			t.busy += v
		}
	}
	return t
}

// load is the load average over one minute; 0 if the system does not tell.
func load() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	field, _, _ := strings.Cut(string(text), " ")
	v, err := strconv.ParseFloat(field, 64)
	if err != nil {
		return 0
	}
	return v
}
