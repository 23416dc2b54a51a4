package planning

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// Load is under what a plan is made anew.
type Load struct {
	PacketIns float64 // per second, of the whole network
	Changes   float64 // of the topology, per second
}

// runningPlan names the plan that runs, among those that are read by name.
const runningPlan = "the plan that runs"

// Next makes a plan that runs anew, as its head says but for another load, such that moves
// away from what runs cost, and compares the two under that load.
func Next(ctx context.Context, from Sources, running Text, load Load) (Text, *Update, error) {
	next := Text{Source: "the plan made anew"}
	m, err := ReadMade(running.Source, running.Text, &pflag.FlagSet{})
	if err != nil {
		return next, nil, err
	}
	named := from.Plan
	from.Plan = func(name string) (string, []byte, error) {
		if name == runningPlan {
			return running.Source, running.Text, nil
		}
		return named(name)
	}
	m.options.packetIns, m.options.changes, m.options.current = load.PacketIns, load.Changes, runningPlan
	made, err := m.options.Make(ctx, from)
	if err != nil {
		return next, nil, err
	}
	text, err := made.Plan.YAML()
	if err != nil {
		return next, nil, err
	}
	head := madeByLine
	for _, flag := range append(slices.DeleteFunc(m.by, isLoad), fmt.Sprintf("--packet-ins=%g", load.PacketIns), fmt.Sprintf("--changes=%g", load.Changes)) {
		name, value, _ := strings.Cut(flag, "=")
		head += " " + name + "=" + strconv.Quote(value)
	}
	head += "\n"
	for _, s := range made.Servers {
		var workers []string
		for _, w := range made.Plan.Workers {
			if made.Where[w.Name] == s.Name {
				workers = append(workers, w.Name)
			}
		}
		head += fmt.Sprintf("%s%s: %s\n", serverLine, s.Name, strings.Join(workers, " "))
	}
	next.Text = append([]byte(head), text...)
	u, err := Diff(ctx, from, running, next, &pflag.FlagSet{})
	return next, u, err
}

// isLoad reports whether a flag of a head says the load, or what ran before.
func isLoad(flag string) bool {
	name, _, _ := strings.Cut(flag, "=")
	return slices.Contains([]string{"--packet-ins", "--changes", "--current"}, name)
}
