package testbed

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/deploy/plans"
	"github.com/weft-sdn/weft/plan"
	"github.com/weft-sdn/weft/test/measure"
)

// differs is what the controller has otherwise than that of a user, who types
// weft up. All that a Config can say is in it.
func (c Config) differs() (list []string) {
	if c.CPU >= 0 {
		list = append(list, fmt.Sprintf("controller on processor %d only", c.CPU))
	}
	if len(c.Environment) > 0 {
		list = append(list, "environment of the controller: "+strings.Join(c.Environment, " "))
	}
	if c.Plan == nil {
		return list
	}
	p := c.Plan
	add := func(format string, args ...any) { list = append(list, p.Name+": "+fmt.Sprintf(format, args...)) }
	var runs []string
	for _, w := range p.Workers {
		runs = append(runs, w.Services...)
	}
	if left := slices.DeleteFunc(everyService(), func(s string) bool { return slices.Contains(runs, s) }); len(left) > 0 {
		add("without %s", strings.Join(left, ", "))
	}
	for _, w := range p.Workers {
		if w.CPUs != "" {
			add("%s on processor %s", w.Name, w.CPUs)
		}
		if w.Nice != 0 {
			add("%s at nice %d", w.Name, w.Nice)
		}
		if w.CPUQuota > 0 {
			add("%s has %g of a processor", w.Name, w.CPUQuota)
		}
		if w.Autoscale != "" {
			add("%s is scaled: %s", w.Name, w.Autoscale)
		}
		for _, s := range set(w.Settings) {
			add("%s: %s", w.Name, s)
		}
	}
	for _, s := range set(p.Config) {
		add("%s", s)
	}
	if len(p.Pipeline) > 0 {
		add("pipeline %s", strings.Join(p.Pipeline, ", "))
	}
	if p.Balance != "" {
		add("balance %s", p.Balance)
	}
	return list
}

// everyService is the services that a controller runs if nobody says otherwise.
func everyService() (list []string) {
	text, err := plans.Read("single")
	if err != nil {
		panic(err) // it is built in
	}
	p, err := plan.Parse("single", text)
	if err != nil {
		panic(err)
	}
	for _, w := range p.Workers {
		list = append(list, w.Services...)
	}
	return list
}

// set is settings of services in the order of their names.
func set(all map[string]map[string]string) (list []string) {
	for _, service := range sorted(all) {
		for _, key := range sorted(all[service]) {
			list = append(list, fmt.Sprintf("%s.%s %s", service, key, all[service][key]))
		}
	}
	return list
}

// Urgent runs work on a thread of its own, on one processor and with a priority
// that counts beside other sessions, too: nice counts within one only where
// autogroups are on (sched(7)). What of that cannot be is left out.
func Urgent(ctx context.Context, what string, cpu, nice int, work func() error) error {
	measure.Differs(ctx, fmt.Sprintf("%s on processor %d at nice %d, this session's autogroup too", what, cpu, nice))
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
	var one unix.CPUSet
	one.Set(cpu)
	_ = unix.SchedSetaffinity(0, &one)
	_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), nice)
	defer raise(nice)()
	return work()
}

// ownGroup is how much of a processor the kernel gives the session of this process,
// beside other sessions.
const ownGroup = "/proc/self/autogroup"

// raise gives this session a priority; the result gives it back the one that it
// had.
func raise(nice int) (back func()) {
	b, err := os.ReadFile(ownGroup)
	before := strings.TrimSpace(string(b))
	before = before[strings.LastIndexByte(before, ' ')+1:]
	if err != nil || before == "" || os.WriteFile(ownGroup, []byte(strconv.Itoa(nice)), 0) != nil {
		return func() {}
	}
	return func() { _ = os.WriteFile(ownGroup, []byte(before), 0) }
}
