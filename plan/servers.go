package plan

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/weft-sdn/weft/internal/document"
)

// Server is a machine, or a share of one, on which workers may run.
type Server struct {
	Name string
	// CPU is how many processors it has, or may be used.
	CPU float64
	// Memory is how much may be used.
	Memory Bytes
	// Domain is its power supply; empty is one of its own.
	Domain string
	// Address is the host name or address at which the workers on other machines
	// reach it; empty means this machine, that of the supervisor.
	Address string
	// CPUs are the processors that its workers are bound to, for a share of a
	// machine: "0,2-3"; empty means all.
	CPUs string
}

// maxServers is how many there may be.
const maxServers = 1024

// ParseServers reads servers from YAML: below servers, a name for each with its
// keys cpu, memory, domain, address and cpus. All mistakes are reported, each on
// a line of its own as FILE:LINE.
func ParseServers(source string, text []byte) ([]Server, error) {
	var list []Server
	r := &reader{plan: &Plan{source: source, lines: map[string]int{}, unread: map[string]bool{}}}
	v, mistakes, ok := document.Read(text, limits("list of servers"))
	r.mistakes = mistakes
	if ok {
		r.keys("", v, field{"servers", func(path string, v document.Value) {
			r.named(path, v, "a name for each server with its keys below", func(name, path string, v document.Value) {
				list = append(list, r.server(name, path, v))
			})
		}})
		j := &judge{plan: r.plan}
		j.servers(list)
		r.mistakes = append(r.mistakes, j.mistakes...)
	}
	if err := r.plan.report(r.mistakes); err != nil {
		return nil, err
	}
	return list, nil
}

func (r *reader) server(name, path string, v document.Value) Server {
	s := Server{Name: name}
	r.keys(path, v,
		field{"cpu", r.float(&s.CPU)},
		field{"memory", func(path string, v document.Value) {
			b, err := ParseBytes(v.Text)
			if err != nil {
				r.refuse(path, v.Line, "%s: want an amount of memory, such as 512MiB or 2GiB, not %s", path, v.Short())
			}
			s.Memory = b
		}},
		field{"domain", r.text(&s.Domain)},
		field{"address", r.text(&s.Address)},
		field{"cpus", r.text(&s.CPUs)})
	return s
}

// CheckServers reports servers that cannot be.
func CheckServers(list []Server) error {
	j := &judge{plan: &Plan{}}
	j.servers(list)
	return j.plan.report(j.mistakes)
}

func (j *judge) servers(list []Server) {
	switch {
	case len(list) == 0:
		j.fail("servers", "servers: there are none; name at least one, as {servers: {s1: {cpu: 4, memory: 8GiB}}}")
	case len(list) > maxServers:
		j.fail("servers", "servers: %d; there may be at most %d", len(list), maxServers)
	}
	for i, s := range list {
		path := "servers." + s.Name
		j.label(path, "server", s.Name)
		if slices.ContainsFunc(list[:i], func(o Server) bool { return o.Name == s.Name }) {
			j.fail(path, "%s: the name is there twice; give each server its own", path)
		}
		if !(s.CPU > 0 && s.CPU <= 65536) {
			j.fail(path+".cpu", "%s.cpu: want a number of processors above 0 and up to 65536, not %g", path, s.CPU)
		}
		if s.Memory > maxMemory {
			j.fail(path+".memory", "%s.memory: want at most %v, not %v", path, Bytes(maxMemory), s.Memory)
		}
		if s.Address != "" && (len(s.Address) > 253 || strings.ContainsAny(s.Address, " \t\n/[]") || strings.Contains(s.Address, ":") && net.ParseIP(s.Address) == nil) {
			j.fail(path+".address", "%s.address: want a host name or an address without a port, not %q", path, s.Address)
		}
		if s.CPUs != "" {
			if err := parseCPUs(s.CPUs); err != nil {
				j.fail(path+".cpus", "%s.cpus: %v", path, err)
			}
		}
	}
}

// LocalServers returns n shares of one machine, s1 and so on: each has as many of
// its processors and as much of its memory as all.
func LocalServers(n int, cpu float64, memory Bytes) ([]Server, error) {
	if n < 1 || n > maxServers {
		return nil, fmt.Errorf("%d servers: want 1 to %d", n, maxServers)
	}
	list := make([]Server, n)
	for i := range list {
		list[i] = Server{Name: fmt.Sprintf("s%d", i+1), CPU: cpu / float64(n), Memory: memory / Bytes(n)}
	}
	return list, nil
}
