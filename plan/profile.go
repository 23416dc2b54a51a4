package plan

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weft-sdn/weft/internal/document"
)

// Figure is a number that has been measured, or has not.
type Figure struct {
	Value float64
	Known bool
}

// Measured returns a figure that is known.
func Measured(v float64) Figure { return Figure{v, true} }

// Profile is what a controller has been measured to need: time, memory, traffic
// between services, and the delays of transports. Figures that were not
// measured are not known, and nobody guesses them.
type Profile struct {
	// Seconds is how long was measured.
	Seconds float64
	// Switches is how many switches there were.
	Switches int
	// PacketIns is the packet-ins per second meanwhile, probes of links left out.
	PacketIns float64
	// Changes is how often per second new paths were computed for a changed
	// topology.
	Changes float64
	// Process is the base cost of a process: what no service is to be charged
	// with, such as garbage collection and the runtime's own.
	Process Demand
	// Services are the demands by service; sorted by name.
	Services []Demand
	// Rates are what services send each other; sorted by From and To.
	Rates []Rate
	// Delays are those of the transports; sorted by name.
	Delays []Delay

	source string
	lines  map[string]int
}

// Demand is what a service takes.
type Demand struct {
	Service string // empty for a process
	// CPU is the time of processors it took while it was measured, in seconds
	// per second.
	CPU Figure
	// Idle is that part of it that is there without packet-ins and changes, for
	// the switches that there were: probes, echoes, statistics.
	Idle Figure
	// PerPacket is the time for each packet-in of the controller, in seconds.
	PerPacket Figure
	// PerChange is the time for each change of the topology, in seconds.
	PerChange Figure
	// Memory is in octets.
	Memory Figure
	// Packets is how many packets per second its stage looked at; of a service
	// without a stage it is not known.
	Packets Figure
}

// Rate is what one service sends another, per second.
type Rate struct {
	From, To      string
	Calls, Events float64
}

// Delay is how long an empty request takes over a transport, there and back, in
// seconds.
type Delay struct {
	Transport string
	Local     Figure // between processes of one machine
	Remote    Figure // between machines
}

// Source returns the source name given to ParseProfile.
func (p *Profile) Source() string { return p.source }

// Of returns the demand of a service; all unknown if it was not measured.
func (p *Profile) Of(service string) Demand {
	if i := slices.IndexFunc(p.Services, func(d Demand) bool { return d.Service == service }); i >= 0 {
		return p.Services[i]
	}
	return Demand{Service: service}
}

// DelayOf returns the delays of a transport; unknown if they were not measured.
func (p *Profile) DelayOf(transport string) Delay {
	if i := slices.IndexFunc(p.Delays, func(d Delay) bool { return d.Transport == transport }); i >= 0 {
		return p.Delays[i]
	}
	return Delay{Transport: transport}
}

// missing stands for an unknown figure.
const missing = "missing"

// The bounds of figures.
const (
	maxCPU      = 1e6 // processors
	maxRate     = 1e9 // per second
	maxTime     = 3600.0
	maxServices = 1000
)

// ParseProfile reads a profile from YAML; source is for messages. All mistakes
// are reported, each on a line of its own as FILE:LINE.
func ParseProfile(source string, text []byte) (*Profile, error) {
	p := &Profile{source: source, lines: map[string]int{}}
	r := &reader{plan: &Plan{source: source, lines: p.lines, unread: map[string]bool{}}}
	v, mistakes, ok := document.Read(text, limits("profile"))
	r.mistakes = mistakes
	if ok {
		p.read(r, v)
		r.mistakes = append(r.mistakes, p.invalid(r.plan.unread)...)
	}
	if err := r.plan.report(r.mistakes); err != nil {
		return nil, err
	}
	p.sort()
	return p, nil
}

// Validate reports impossible figures.
func (p *Profile) Validate() error { return (&Plan{source: p.source}).report(p.invalid(nil)) }

func (p *Profile) sort() {
	slices.SortFunc(p.Services, func(a, b Demand) int { return cmp.Compare(a.Service, b.Service) })
	slices.SortFunc(p.Rates, func(a, b Rate) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) })
	slices.SortFunc(p.Delays, func(a, b Delay) int { return cmp.Compare(a.Transport, b.Transport) })
}

func (p *Profile) read(r *reader, v document.Value) {
	r.keys("", v,
		field{"measured", func(path string, v document.Value) {
			r.keys(path, v,
				field{"seconds", r.float(&p.Seconds)},
				field{"switches", r.number(&p.Switches)},
				field{"packet_ins", r.float(&p.PacketIns)},
				field{"changes", r.float(&p.Changes)})
		}},
		field{"process", func(path string, v document.Value) { p.Process = r.demand("", path, v) }},
		field{"services", func(path string, v document.Value) {
			r.named(path, v, "a name for each service with its figures below", func(name, path string, v document.Value) {
				p.Services = append(p.Services, r.demand(name, path, v))
			})
		}},
		field{"rates", func(path string, v document.Value) { p.readRates(r, path, v) }},
		field{"delays", func(path string, v document.Value) {
			r.named(path, v, "transports with their delays below", func(name, path string, v document.Value) {
				d := Delay{Transport: name}
				r.keys(path, v, field{"local", r.span(&d.Local)}, field{"remote", r.span(&d.Remote)})
				p.Delays = append(p.Delays, d)
			})
		}},
	)
}

func (p *Profile) readRates(r *reader, path string, v document.Value) {
	if v.Kind != document.List {
		r.fail(v.Line, "%s: want a list, such as [{from: forwarding, to: paths, calls: 120, events: 0}], not %s", path, v.Short())
		return
	}
	for i, item := range v.Items {
		var one Rate
		path := fmt.Sprintf("rates[%d]", i)
		r.plan.lines[path] = item.Line
		r.keys(path, item,
			field{"from", r.text(&one.From)},
			field{"to", r.text(&one.To)},
			field{"calls", r.float(&one.Calls)},
			field{"events", r.float(&one.Events)})
		p.Rates = append(p.Rates, one)
	}
}

func (r *reader) demand(name, path string, v document.Value) Demand {
	d := Demand{Service: name}
	r.keys(path, v,
		field{"cpu", r.figure(&d.CPU)},
		field{"idle", r.figure(&d.Idle)},
		field{"per_packet", r.span(&d.PerPacket)},
		field{"per_change", r.span(&d.PerChange)},
		field{"memory", r.memory(&d.Memory)},
		field{"packets", r.figure(&d.Packets)})
	return d
}

// float reads a number other than YAML's special ones.
func (r *reader) float(to *float64) func(string, document.Value) {
	return func(path string, v document.Value) {
		n, err := strconv.ParseFloat(v.Text, 64)
		if v.Kind != document.Plain || err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
			r.refuse(path, v.Line, "%s: want a number, not %s", path, v.Short())
			return
		}
		*to = n
	}
}

// figure reads a number, or the word missing.
func (r *reader) figure(to *Figure) func(string, document.Value) {
	return func(path string, v document.Value) {
		if v.Text == missing {
			return
		}
		before := len(r.mistakes)
		r.float(&to.Value)(path, v)
		to.Known = len(r.mistakes) == before
	}
}

// span reads a time as seconds, or the word missing.
func (r *reader) span(to *Figure) func(string, document.Value) {
	return func(path string, v document.Value) {
		if v.Text == missing {
			return
		}
		d, err := time.ParseDuration(v.Text)
		if err != nil {
			r.fail(v.Line, "%s: want a time such as 12.5us, or %s, not %s", path, missing, v.Short())
			return
		}
		*to = Measured(d.Seconds())
	}
}

// memory reads an amount of memory, or the word missing.
func (r *reader) memory(to *Figure) func(string, document.Value) {
	return func(path string, v document.Value) {
		if v.Text == missing {
			return
		}
		b, err := ParseBytes(v.Text)
		if err != nil {
			r.fail(v.Line, "%s: want an amount of memory, such as 512KiB, or %s, not %s", path, missing, v.Short())
			return
		}
		*to = Measured(float64(b))
	}
}

// invalid returns the impossible figures, except those whose values could not
// be read.
func (p *Profile) invalid(unread map[string]bool) []document.Mistake {
	j := &judge{plan: &Plan{source: p.source, lines: p.lines, unread: unread}}
	within := func(path string, v, most float64) {
		if !(v >= 0 && v <= most) {
			j.fail(path, "%s: want 0 to %g, not %g", path, most, v)
		}
	}
	within("measured.seconds", p.Seconds, 1e9)
	within("measured.packet_ins", p.PacketIns, maxRate)
	within("measured.changes", p.Changes, maxRate)
	if p.Switches < 1 {
		j.fail("measured.switches", "measured.switches: want at least 1, not %d: what a service takes is said of so many switches", p.Switches)
	}
	if len(p.Services) > maxServices {
		j.fail("services", "services: %d; a profile has at most %d", len(p.Services), maxServices)
	}
	demand := func(path string, d Demand) {
		within(path+".cpu", d.CPU.Value, maxCPU)
		within(path+".idle", d.Idle.Value, maxCPU)
		within(path+".per_packet", d.PerPacket.Value, maxTime)
		within(path+".per_change", d.PerChange.Value, maxTime)
		within(path+".memory", d.Memory.Value, maxMemory)
		within(path+".packets", d.Packets.Value, maxRate)
	}
	demand("process", p.Process)
	for _, d := range p.Services {
		path := "services." + d.Service
		if !service.MatchString(d.Service) {
			j.fail(path, "%s: %q is no service's name, which is lower-case letters and digits", path, d.Service)
		}
		demand(path, d)
	}
	for i, r := range p.Rates {
		path := fmt.Sprintf("rates[%d]", i)
		if unread[path] {
			continue
		}
		for _, end := range []struct{ key, name string }{{"from", r.From}, {"to", r.To}} {
			if !service.MatchString(end.name) {
				j.fail(path+"."+end.key, "%s: want from and to, names of services, not %q", path, end.name)
			}
		}
		within(path+".calls", r.Calls, maxRate)
		within(path+".events", r.Events, maxRate)
	}
	for _, d := range p.Delays {
		path := "delays." + d.Transport
		if !slices.Contains(Transports(), d.Transport) {
			j.fail(path, "%s: unknown transport %q; allowed: %s", path, d.Transport, strings.Join(Transports(), ", "))
		}
		within(path+".local", d.Local.Value, maxTime)
		within(path+".remote", d.Remote.Value, maxTime)
	}
	return j.mistakes
}

// YAML returns the profile in the form that ParseProfile reads, below comment
// lines about its origin.
func (p *Profile) YAML(about ...string) []byte {
	var b strings.Builder
	for _, line := range about {
		b.WriteString(strings.TrimRight("# "+strings.Join(strings.Fields(line), " "), " ") + "\n")
	}
	fmt.Fprintf(&b, "measured: {seconds: %s, switches: %d, packet_ins: %s, changes: %s}\n", number(p.Seconds), p.Switches, number(p.PacketIns), number(p.Changes))
	fmt.Fprintf(&b, "process: %s\n", p.Process.flow())
	if len(p.Services) > 0 {
		b.WriteString("services:\n")
	}
	for _, d := range p.Services {
		fmt.Fprintf(&b, "  %s: %s\n", document.Quoted(d.Service), d.flow())
	}
	if len(p.Rates) > 0 {
		b.WriteString("rates:\n")
	}
	for _, r := range p.Rates {
		fmt.Fprintf(&b, "  - {from: %s, to: %s, calls: %s, events: %s}\n", document.Quoted(r.From), document.Quoted(r.To), number(r.Calls), number(r.Events))
	}
	if len(p.Delays) > 0 {
		b.WriteString("delays:\n")
	}
	for _, d := range p.Delays {
		fmt.Fprintf(&b, "  %s: {local: %s, remote: %s}\n", document.Quoted(d.Transport), span(d.Local), span(d.Remote))
	}
	return []byte(b.String())
}

func (d Demand) flow() string {
	s := fmt.Sprintf("{cpu: %s, idle: %s, per_packet: %s, per_change: %s, memory: %s", figure(d.CPU), figure(d.Idle), span(d.PerPacket), span(d.PerChange), amount(d.Memory))
	if d.Packets.Known {
		s += ", packets: " + figure(d.Packets)
	}
	return s + "}"
}

// number writes a number with four digits, or all digits before the point.
func number(v float64) string {
	if v >= 1000 {
		return strconv.FormatFloat(math.Round(v), 'f', -1, 64)
	}
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64) // what was just written
	return strconv.FormatFloat(v, 'f', -1, 64)
}

func figure(f Figure) string {
	if !f.Known {
		return missing
	}
	return number(f.Value)
}

func span(f Figure) string {
	if !f.Known {
		return missing
	}
	return strings.ReplaceAll(time.Duration(math.Round(f.Value*1e9)).String(), "µ", "u")
}

func amount(f Figure) string {
	if !f.Known {
		return missing
	}
	return (Bytes(math.Ceil(f.Value/1024)) * 1024).String()
}
