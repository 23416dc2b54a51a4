package topology

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-sdn/weft/internal/document"
)

// SpecForms says what Resolve understands, for help texts.
const SpecForms = "FILE.yaml, linear:N[,HOSTS], ring:N[,HOSTS], tree:DEPTH,FANOUT, fattree:K, random:N,DEGREE,SEED, demo, 5gc:N, oshi, carrier:CORES,EDGES,SEED, msn-fig8, msn-fig13, graphml:FILE, gml:FILE, t3d:FILE"

// examples are specs, one for each form that has numbers.
var examples = []string{"linear:4", "ring:4", "tree:2,3", "fattree:4", "random:10,3,1", "5gc:3", "carrier:4,8,1"}

// SpecError says what is wrong with a spec.
type SpecError struct {
	Spec string
	Why  string
}

func (e *SpecError) Error() string { return fmt.Sprintf("topology %q: %s", e.Spec, e.Why) }

// Resolve returns the topology named by a spec: one of SpecForms. The error is a
// SpecError if the spec is wrong, else that of a file; see Read.
func Resolve(spec string) (*Topology, error) { return ResolveWith(spec, ReadOptions{}) }

// ResolveWith is Resolve with options for a file.
func ResolveWith(spec string, o ReadOptions) (*Topology, error) {
	kind, rest, _ := strings.Cut(spec, ":")
	switch kind {
	case "linear":
		return generated(spec, rest, 1, 2, func(a []int) (*Topology, error) { return Linear(a[0], a[1]) })
	case "ring":
		return generated(spec, rest, 1, 2, func(a []int) (*Topology, error) { return Ring(a[0], a[1]) })
	case "tree":
		return generated(spec, rest, 2, 2, func(a []int) (*Topology, error) { return Tree(a[0], a[1]) })
	case "fattree":
		return generated(spec, rest, 1, 1, func(a []int) (*Topology, error) { return FatTree(a[0]) })
	case "random":
		return generated(spec, rest, 3, 3, func(a []int) (*Topology, error) { return Random(a[0], a[1], uint64(a[2])) })
	case "5gc":
		return generated(spec, rest, 1, 1, func(a []int) (*Topology, error) { return Core5G(a[0]) })
	case "carrier":
		return generated(spec, rest, 3, 3, func(a []int) (*Topology, error) { return Carrier(a[0], a[1], uint64(a[2])) })
	case "graphml", "gml", "t3d":
		if rest == "" {
			return nil, &SpecError{spec, fmt.Sprintf("no file; want %s:FILE", kind)}
		}
		if kind == "t3d" {
			return LoadT3D(rest)
		}
		return loadFile(rest, o)
	}
	switch spec {
	case "demo":
		return Demo(), nil
	case "oshi":
		return OSHI(), nil
	case "msn-fig8":
		return MSNFig8(), nil
	case "msn-fig13":
		return MSNFig13(), nil
	}
	if _, err := os.Stat(spec); err != nil {
		var kinds []string
		for _, f := range Forms() {
			kinds = append(kinds, strings.TrimSuffix(f, ":"))
		}
		return nil, &SpecError{spec, "neither a file nor a known form; allowed: " + SpecForms + document.Meant(kind, kinds)}
	}
	return loadFile(spec, o)
}

// Forms returns how specs of SpecForms but a file's name begin, for completion.
func Forms() []string {
	var all []string
	for _, f := range strings.Split(SpecForms, ", ") {
		if kind, _, more := strings.Cut(f, ":"); more {
			all = append(all, kind+":")
		} else if !strings.HasPrefix(f, "FILE") {
			all = append(all, f)
		}
	}
	return all
}

// IsForm reports whether a spec is one of SpecForms but a file's name, whatever stands
// behind its colon.
func IsForm(spec string) bool {
	kind, _, _ := strings.Cut(spec, ":")
	for _, f := range strings.Split(SpecForms, ", ") {
		if name, _, ok := strings.Cut(f, ":"); f == spec || ok && name == kind {
			return true
		}
	}
	return false
}

// IsGenerated reports whether a spec is one of SpecForms for which Resolve reads no
// file.
func IsGenerated(spec string) bool {
	kind, _, _ := strings.Cut(spec, ":")
	return IsForm(spec) && !slices.Contains([]string{"FILE.yaml", "graphml", "gml", "t3d"}, kind)
}

// LoadFile reads a topology from a file of any of FileForms; see Read.
func LoadFile(path string) (*Topology, error) { return loadFile(path, ReadOptions{}) }

func loadFile(path string, o ReadOptions) (*Topology, error) {
	if strings.EqualFold(filepath.Ext(path), ".t3d") {
		return LoadT3D(path)
	}
	b, err := document.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read lab file: %w", err)
	}
	return Read(path, b, o)
}

// generated parses least to most comma-separated numbers and passes most of
// them on; those left out are 1.
func generated(spec, args string, least, most int, gen func([]int) (*Topology, error)) (*Topology, error) {
	kind, _, _ := strings.Cut(spec, ":")
	form, example := formOf(kind)
	fail := func(why string) (*Topology, error) {
		return nil, &SpecError{spec, fmt.Sprintf("%s; want %s, e.g. %s", why, form, example)}
	}
	parts := strings.Split(args, ",")
	if args == "" {
		parts = nil
	}
	switch n := len(parts); {
	case n == 0:
		return fail(kind + " needs numbers")
	case n < least || n > most:
		return fail(fmt.Sprintf("%s has %s, not %d", kind, numbers(least, most), n))
	}
	nums := make([]int, most)
	for i := range nums {
		nums[i] = 1
		if i >= len(parts) {
			continue
		}
		n, err := strconv.Atoi(strings.TrimSpace(parts[i]))
		if err != nil || n < 0 || n > 1<<20 {
			return fail(fmt.Sprintf("%q is not a number from 0 to %d", parts[i], 1<<20))
		}
		nums[i] = n
	}
	t, err := gen(nums)
	if err != nil {
		return fail(err.Error())
	}
	return t, nil
}

// numbers writes how many there may be.
func numbers(least, most int) string {
	switch {
	case least == most && most == 1:
		return "1 number"
	case least == most:
		return fmt.Sprintf("%d numbers", most)
	}
	return fmt.Sprintf("%d to %d numbers", least, most)
}

// formOf returns the form of a kind of SpecForms that has numbers, and an example.
func formOf(kind string) (form, example string) {
	begins := func(s string) bool { return strings.HasPrefix(s, kind+":") }
	forms := strings.Split(SpecForms, ", ")
	return forms[slices.IndexFunc(forms, begins)], examples[slices.IndexFunc(examples, begins)]
}
