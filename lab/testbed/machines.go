package testbed

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/weft-sdn/weft/internal/document"
	"github.com/weft-sdn/weft/lab/topology"
)

const (
	// MaxText is the most octets of a resource file.
	MaxText = 64 << 10
	// MaxMachines is the most machines of one.
	MaxMachines = 64

	maxCores = 4096
	// defaultPort is where VXLAN arrives, RFC 7348 section 5.
	defaultPort = 4789
)

// Machines is a resource file: machines on which parts of labs run.
type Machines struct {
	List []Machine
	// Controller is where switches on the machines connect instead of what the lab
	// file says; empty: that.
	Controller string
	// KnownHosts and Identity are files of ssh; empty: those of its configuration.
	KnownHosts string
	Identity   string
	// Alone says that those files are all of ssh's configuration, and count alone.
	Alone bool
	// Port is where VXLAN arrives at each machine.
	Port uint16
}

// Machine is one of them.
type Machine struct {
	Name    string     `json:"name"`
	User    string     `json:"user,omitempty"`
	Host    string     `json:"host"`
	SSHPort uint16     `json:"ssh_port,omitempty"` // 0: that of ssh's configuration
	Address netip.Addr `json:"address"`            // where the tunnels end
	Cores   int        `json:"cores"`              // how much of a lab it gets, compared to others
	Nodes   []string   `json:"nodes,omitempty"`    // placed by hand
	Weft    string     `json:"weft,omitempty"`     // path of the program there; empty: this one is copied

	line int
}

func (m *Machine) String() string { return "machine " + m.Name }

// Patterns of what is handed to ssh and to shells on the machines. Lengths are bounded
// apart: a pattern that counts to hundreds takes milliseconds at each start of a program.
var (
	machineName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$`)
	userName    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,31}$`)
	hostName    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)
	filePath    = regexp.MustCompile(`^/[A-Za-z0-9_./+@-]+$`)
)

const (
	hostMost = 253
	pathMost = 901
)

func isFilePath(s string) bool { return len(s) <= pathMost && filePath.MatchString(s) }

// CheckFile says why a file cannot be ssh's identity or list of keys.
func CheckFile(path string) error {
	if !isFilePath(path) {
		return fmt.Errorf("%q is not a file for ssh; allowed: a whole path of letters, digits and any of _./+@-", path)
	}
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("find a file for ssh: %w", err)
	}
	return nil
}

// Read reads a resource file. What is wrong with it comes back as lab.Problems.
func Read(path string) (*Machines, error) {
	text, err := document.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the resource file: %w", err)
	}
	return Parse(path, text)
}

// Parse is Read for text at hand; paths in it are relative to the directory of the
// file.
func Parse(file string, text []byte) (*Machines, error) {
	r := &reader{file: file}
	root, mistakes, ok := document.Read(text, document.Limits{What: "resource file", Octets: MaxText, Lines: 10_000})
	for _, m := range mistakes {
		r.add(m.Line, "", "%s", m.Text)
	}
	if !ok {
		return nil, r.problems
	}
	m := &Machines{Port: defaultPort}
	r.mapping(root, "the resource file", []field{
		{"machines", r.list("machines", MaxMachines, func(v document.Value) { m.List = append(m.List, r.machine(v)) })},
		r.text("controller", &m.Controller),
		r.path("known_hosts", &m.KnownHosts),
		r.path("identity", &m.Identity),
		r.number("vxlan_port", 65535, func(n int) { m.Port = uint16(n) }),
	})
	r.check(m)
	if len(r.problems) > 0 {
		return nil, r.problems
	}
	return m, nil
}

func (r *reader) machine(v document.Value) Machine {
	m := Machine{Cores: 1, line: v.Line}
	r.mapping(v, "a machine", []field{
		r.text("name", &m.Name),
		{"ssh", r.scalar("ssh", func(s string) error { return m.reach(s) })},
		{"address", r.scalar("address", func(s string) (err error) {
			if m.Address, err = netip.ParseAddr(s); err != nil || m.Address.Zone() != "" || !m.Address.IsGlobalUnicast() {
				return fmt.Errorf("%q is not an address of a machine; allowed: such as 192.0.2.1", s)
			}
			return nil
		})},
		r.number("cores", maxCores, func(n int) { m.Cores = n }),
		{"nodes", r.list("nodes", maxNodes, func(v document.Value) {
			r.scalar("nodes", func(s string) error { m.Nodes = append(m.Nodes, s); return nil })(v)
		})},
		r.path("weft", &m.Weft),
	})
	return m
}

// maxNodes is the most nodes that a resource file places by hand on a machine.
const maxNodes = 10_000

// reach reads [USER@]HOST[:PORT], an IPv6 address in brackets.
func (m *Machine) reach(s string) error {
	bad := fmt.Errorf("%q is not where ssh goes; allowed: [USER@]HOST[:PORT], such as root@192.0.2.1 or a name of ssh's configuration", s)
	user, host, found := strings.Cut(s, "@")
	if !found {
		user, host = "", s
	}
	if inner, ok := strings.CutPrefix(host, "["); ok {
		address, rest, _ := strings.Cut(inner, "]")
		if a, err := netip.ParseAddr(address); err != nil || !a.Is6() || a.Zone() != "" || rest != "" && rest[0] != ':' {
			return bad
		}
		m.Host, host = address, rest
	} else {
		m.Host, _, _ = strings.Cut(host, ":")
		host = strings.TrimPrefix(host, m.Host)
		if len(m.Host) > hostMost || !hostName.MatchString(m.Host) {
			return bad
		}
	}
	if host != "" {
		n, err := strconv.ParseUint(host[1:], 10, 16)
		if err != nil || n == 0 {
			return bad
		}
		m.SSHPort = uint16(n)
	}
	if m.User = user; found && !userName.MatchString(user) {
		return bad
	}
	return nil
}

func (r *reader) check(m *Machines) {
	if len(m.List) == 0 {
		r.add(1, "", "the resource file names no machines: give it a list `machines:`")
	}
	names, addresses, nodes := map[string]bool{}, map[netip.Addr]string{}, map[string]string{}
	for i := range m.List {
		k := &m.List[i]
		switch {
		case !machineName.MatchString(k.Name):
			r.add(k.line, "letters, digits, '_', '-', at most 32, beginning with a letter or digit", "%q is not a name for a machine", k.Name)
			continue
		case names[k.Name]:
			r.add(k.line, "", "there are two machines %s", k.Name)
		case k.Host == "":
			r.add(k.line, "", "machine %s: say how ssh reaches it, such as `ssh: root@192.0.2.1`", k.Name)
		case !k.Address.IsValid() && len(m.List) > 1:
			if a, err := netip.ParseAddr(k.Host); err == nil {
				k.Address = a
			} else {
				r.add(k.line, "", "machine %s: say at which address the others send it packets, such as `address: 192.0.2.1`", k.Name)
			}
		}
		names[k.Name] = true
		if other, ok := addresses[k.Address]; ok && k.Address.IsValid() {
			r.add(k.line, "", "machine %s has address %s, which is already machine %s's", k.Name, k.Address, other)
		}
		addresses[k.Address] = k.Name
		for _, node := range k.Nodes {
			if other, ok := nodes[node]; ok {
				r.add(k.line, "", "node %s is placed on machine %s and on machine %s", node, other, k.Name)
			}
			nodes[node] = k.Name
		}
		if k.Address.IsValid() && m.List[0].Address.IsValid() && k.Address.Is4() != m.List[0].Address.Is4() {
			r.add(k.line, "", "machine %s has address %s, and machine %s %s: tunnels need addresses of one family", k.Name, k.Address, m.List[0].Name, m.List[0].Address)
		}
	}
	if m.Controller != "" {
		if err := topology.CheckController(m.Controller); err != nil {
			r.add(1, "", "controller: %v", err)
		}
	}
}

// field is one key that a mapping may have and what reads its value.
type field struct {
	key  string
	read func(document.Value)
}

// reader reads a resource file and collects what is wrong with it.
type reader struct {
	file     string
	problems topology.Problems
}

// maxProblems bounds the reported problems; nobody reads more.
const maxProblems = 100

func (r *reader) add(line int, allowed, format string, args ...any) {
	if len(r.problems) < maxProblems {
		r.problems = append(r.problems, topology.Problem{File: r.file, Line: line, What: document.Wording(format, args...), Allowed: allowed})
	}
}

func (r *reader) mapping(v document.Value, what string, fields []field) {
	keys := make([]string, len(fields))
	for i, f := range fields {
		keys[i] = f.key
	}
	allowed := strings.Join(keys, ", ")
	if v.Kind != document.Mapping {
		if v.Kind != document.Broken {
			r.add(v.Line, allowed, "%s is not a mapping of keys to values", what)
		}
		return
	}
next:
	for _, e := range v.Entries {
		for _, f := range fields {
			if f.key == e.Key {
				f.read(e.Value)
				continue next
			}
		}
		r.add(e.Line, allowed+document.Meant(e.Key, keys), "unknown key %q in %s", e.Key, what)
	}
}

func (r *reader) list(what string, most int, read func(document.Value)) func(document.Value) {
	return func(v document.Value) {
		switch {
		case v.Kind == document.Null || v.Kind == document.Broken:
		case v.Kind != document.List:
			r.add(v.Line, "", "%s: write a list", what)
		case len(v.Items) > most:
			r.add(v.Line, fmt.Sprintf("at most %d", most), "%s has %d entries", what, len(v.Items))
		default:
			for _, e := range v.Items {
				read(e)
			}
		}
	}
}

func (r *reader) scalar(key string, set func(string) error) func(document.Value) {
	return func(v document.Value) {
		if v.Kind == document.Broken {
			return
		}
		if !v.Scalar() {
			r.add(v.Line, "", "%s: write a single value", key)
			return
		}
		if err := set(v.Text); err != nil {
			r.add(v.Line, "", "%s: %v", key, err)
		}
	}
}

func (r *reader) text(key string, to *string) field {
	return field{key, r.scalar(key, func(s string) error { *to = s; return nil })}
}

func (r *reader) number(key string, most int, set func(int)) field {
	return field{key, r.scalar(key, func(s string) error {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > most {
			return fmt.Errorf("%q is not allowed; allowed: a number from 1 to %d", s, most)
		}
		set(n)
		return nil
	})}
}

// path reads the path of a file, which goes to ssh or a shell.
func (r *reader) path(key string, to *string) field {
	return field{key, r.scalar(key, func(s string) error {
		if !filepath.IsAbs(s) && r.file != "" && key != "weft" {
			dir, err := filepath.Abs(filepath.Dir(r.file))
			if err != nil {
				return err
			}
			s = filepath.Join(dir, s)
		}
		if !isFilePath(s) {
			return fmt.Errorf("%q is not allowed; allowed: a whole path of letters, digits and any of _./+@-", s)
		}
		*to = s
		return nil
	})}
}
