package discovery

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weft-sdn/weft/flow"
)

// A memory is what a port was when it was last saved, for the next run.
type memory struct {
	role flow.PortRole // RoleEdge, RoleLink, or RoleUnsettled for a silent former link
	far  flow.Location // of a link or a former link
	// out reports, and the next fields describe, that the port's probes arrived
	// at the far end.
	out     bool
	latency int64 // nanoseconds
	since   int64 // link: of its state; edge: since when it is one; former link: since when the port is down, 0 if it is up
	held    int64 // link: dampened until then, 0 if not
	trial   bool  // link or former link: it was on trial
	host    bool  // edge: hosts have sent there
	quiet   bool  // edge: a circuit did not want probes there
}

// encodePorts writes the memories of the ports of a switch, one line each:
// "PORT edge SINCE [host] [quiet]", "PORT link DPID PORT [LATENCY SINCE HELD] [trial]" or
// "PORT was DPID PORT [DOWN] [trial]"; times in seconds since 1970, the latency in microseconds.
func encodePorts(ports map[flow.Port]memory) []byte {
	lines := make([]string, 0, len(ports))
	for p, m := range ports {
		line := fmt.Sprintf("%d edge %d", uint32(p), seconds(m.since))
		switch {
		case m.role == flow.RoleLink && m.out:
			line = fmt.Sprintf("%d link %v %d %d %d %d", uint32(p), m.far.Switch, uint32(m.far.Port), m.latency/1000, seconds(m.since), seconds(m.held))
		case m.role == flow.RoleLink:
			line = fmt.Sprintf("%d link %v %d", uint32(p), m.far.Switch, uint32(m.far.Port))
		case m.role == flow.RoleUnsettled:
			line = fmt.Sprintf("%d was %v %d", uint32(p), m.far.Switch, uint32(m.far.Port))
			if m.since != 0 {
				line += fmt.Sprintf(" %d", seconds(m.since))
			}
		default:
			if m.host {
				line += " host"
			}
			if m.quiet {
				line += " quiet"
			}
		}
		if m.trial {
			line += " trial"
		}
		lines = append(lines, line+"\n")
	}
	slices.Sort(lines)
	return []byte(strings.Join(lines, ""))
}

func seconds(ns int64) int64 { return ns / int64(time.Second) }

// decodePorts reads the output of encodePorts.
func decodePorts(b []byte) (map[flow.Port]memory, error) {
	ports := map[flow.Port]memory{}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < 3 {
			return nil, fmt.Errorf("line %q: want PORT edge SINCE, PORT link DPID PORT or PORT was DPID PORT", line)
		}
		p, err := strconv.ParseUint(f[0], 10, 32)
		if err != nil {
			return nil, fmt.Errorf("line %q: %w", line, err)
		}
		fields := f[2:]
		trial := f[1] != "edge" && fields[len(fields)-1] == "trial"
		if trial {
			fields = fields[:len(fields)-1]
		}
		m, err := decodeMemory(f[1], fields)
		if err != nil {
			return nil, fmt.Errorf("line %q: %w", line, err)
		}
		m.trial = trial
		ports[flow.Port(p)] = m
	}
	return ports, nil
}

// decodeMemory parses the fields after the port in a line.
func decodeMemory(kind string, f []string) (m memory, err error) {
	if kind == "edge" {
		for i, word := range []string{"quiet", "host"} {
			if last := len(f) - 1; f[last] == word && last > 0 {
				m.quiet, m.host, f = m.quiet || i == 0, m.host || i == 1, f[:last]
			}
		}
	}
	var n [5]int64
	for i := range f {
		if i < len(n) && !(kind != "edge" && i == 0) && err == nil {
			n[i], err = strconv.ParseInt(f[i], 10, 64)
		}
	}
	switch {
	case err != nil:
		return m, err
	case kind == "edge" && len(f) == 1:
		m.role, m.since = flow.RoleEdge, n[0]*int64(time.Second)
		return m, nil
	case kind == "was" && (len(f) == 2 || len(f) == 3):
		sw, err := flow.ParseDPID(f[0])
		return memory{role: flow.RoleUnsettled, far: flow.Location{Switch: sw, Port: flow.Port(n[1])}, since: n[2] * int64(time.Second)}, err
	case kind == "link" && (len(f) == 2 || len(f) == 5):
		sw, err := flow.ParseDPID(f[0])
		return memory{role: flow.RoleLink, far: flow.Location{Switch: sw, Port: flow.Port(n[1])}, out: len(f) == 5,
			latency: n[2] * 1000, since: n[3] * int64(time.Second), held: n[4] * int64(time.Second)}, err
	}
	return m, fmt.Errorf("want edge SINCE [host] [quiet], link DPID PORT [LATENCY SINCE HELD] or was DPID PORT [DOWN]")
}
