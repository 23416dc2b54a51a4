package bench

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// benchBound is what a figure of hydra is to be, at most, and what it is.
type benchBound struct {
	Figure string  `json:"figure"`
	Mark   float64 `json:"mark"`
	Is     float64 `json:"is"`
	Met    bool    `json:"met"`
}

// marks returns the marks of the hydra topology and of 1,000 switches with 6,000
// links, none of others.
func (r *benchDiscovery) marks() []benchBound {
	var marks []benchBound
	switch {
	case r.Topology == "hydra":
		marks = []benchBound{
			{Figure: "discovered_s", Mark: 60, Is: r.DiscoveredS},
			{Figure: "peak_memory_bytes", Mark: 1 << 30, Is: float64(r.PeakBytes)},
			{Figure: "idle_cpu_percent", Mark: 25, Is: r.IdleCPU},
		}
	case r.Switches == 1000 && r.Links == 6000:
		marks = []benchBound{
			{Figure: "discovered_s", Mark: 20, Is: r.DiscoveredS},
			{Figure: "idle_cpu_percent", Mark: 10, Is: r.IdleCPU},
		}
	}
	for i := range marks {
		marks[i].Met = marks[i].Is <= marks[i].Mark
	}
	return marks
}

// write prints the figures.
func (r *benchDiscoveries) write(w io.Writer, output string) error {
	if output == "json" {
		return benchJSON(w, r)
	}
	fmt.Fprintf(w, "discovery of %s: %d switches, %d links, OpenFlow %s, medians of %d rounds (95 %%)\n", r.Topology, r.Switches, r.Links, r.OpenFlow, r.Rounds)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "all switches connected\t%.2f s (%s)\n", r.ConnectedS, r.CI95.text("connected_s", benchTwo))
	fmt.Fprintf(t, "all links known\t%.2f s (looked every %.2f s) (%s)\n", r.DiscoveredS, r.PollS, r.CI95.text("discovered_s", benchTwo))
	fmt.Fprintf(t, "switches told nothing new\t%.0f s later\n", r.SettledS)
	fmt.Fprintf(t, "wrong links\t%d\n", r.WrongLinks)
	fmt.Fprintf(t, "CPU until then\t%.2f s (%s)\n", r.BusyCPUS, r.CI95.text("busy_cpu_s", benchTwo))
	fmt.Fprintf(t, "CPU when idle\t%.1f%% of a processor over %.0f s (%s)\n", r.IdleCPU, r.IdleS, r.CI95.text("idle_cpu_percent", benchTwo))
	fmt.Fprintf(t, "memory\t%d MiB, at most %d MiB\n", r.MemoryBytes>>20, r.PeakBytes>>20)
	fmt.Fprintf(t, "probes when idle\t%.0f a second\n", r.ProbesPerS)
	fmt.Fprintf(t, "messages\t%d packet-ins, %d packet-outs, %d flow-mods\n", r.PacketIns, r.PacketOuts, r.FlowMods)
	for _, m := range r.Marks {
		verdict := "met"
		if !m.Met {
			verdict = "missed"
		}
		fmt.Fprintf(t, "mark: %s\tat most %g: %s\n", m.Figure, m.Mark, verdict)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return r.writeTaken(w)
}
