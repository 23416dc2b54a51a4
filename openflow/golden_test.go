package openflow

import (
	"encoding/hex"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/flow"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden is a message that is kept in testdata/NAME.txt: its octets, and what
// Open vSwitch and Wireshark read in them (see peers_test.go). A peer that does
// not know part of the message is not asked.
type golden struct {
	name        string
	codec       string
	version     Version
	value       any
	noOVS       string // why Open vSwitch is not asked
	noWireshark string // why Wireshark is not asked
}

// The sections of a golden file.
const (
	octetsSection    = "octets"
	ovsSection       = "Open vSwitch"
	wiresharkSection = "Wireshark"
)

func (g *golden) file() string { return filepath.Join("testdata", g.name+".txt") }

// sections reads the golden file.
func (g *golden) sections(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(g.file())
	if err != nil && !*update {
		t.Fatalf("%v: go test ./openflow -update writes it", err)
	}
	sections := map[string]string{}
	name := ""
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "-- "); ok {
			name = strings.TrimSpace(rest)
			continue
		}
		sections[name] += line
	}
	return sections
}

// compare compares a section of the golden file, or writes it.
func (g *golden) compare(t *testing.T, section, got string) {
	t.Helper()
	sections := g.sections(t)
	if sections[section] == got {
		return
	}
	if !*update {
		t.Errorf("%s, %s: got\n%swant\n%sIf this is right, go test ./openflow -update", g.name, section, got, sections[section])
		return
	}
	sections[section] = got
	var out strings.Builder
	for _, s := range []string{octetsSection, ovsSection, wiresharkSection} {
		if sections[s] != "" {
			fmt.Fprintf(&out, "-- %s\n%s", s, sections[s])
		}
	}
	if err := os.WriteFile(g.file(), []byte(out.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// octets is the message in the golden file.
func (g *golden) octets(t *testing.T) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(g.sections(t)[octetsSection]), ""))
	if err != nil {
		t.Fatalf("%s: %v", g.file(), err)
	}
	return b
}

func codecNamed(t *testing.T, name string) *codec {
	t.Helper()
	for _, c := range codecs() {
		if c.name == name {
			return &c
		}
	}
	t.Fatalf("no codec %q", name)
	return nil
}

// TestGolden compares both directions with the golden files.
func TestGolden(t *testing.T) {
	for _, g := range goldens() {
		t.Run(g.name, func(t *testing.T) {
			c := codecNamed(t, g.codec)
			msg, err := c.encode(g.version, nil, 0x5eef, g.value)
			if err != nil {
				t.Fatal(err)
			}
			g.compare(t, octetsSection, hexLines(msg))
			got, err := c.decode(g.version, g.octets(t))
			if err != nil {
				t.Fatal(err)
			}
			if !same(reflect.ValueOf(got), reflect.ValueOf(g.value)) {
				t.Errorf("decoded %+v\nwant    %+v", got, g.value)
			}
			if m, ok := g.value.(flow.Mod); ok {
				if err := CheckMatch(&m.Entry.Match); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func hexLines(b []byte) string {
	var s strings.Builder
	for len(b) > 0 {
		n := min(16, len(b))
		s.WriteString(hex.EncodeToString(b[:n]) + "\n")
		b = b[n:]
	}
	return s.String()
}

func add(m flow.Match, actions ...flow.Action) flow.Mod {
	return flow.Mod{
		Entry:    flow.Entry{Priority: 1000, Cookie: 0x574503, IdleTimeout: 10, HardTimeout: 20, Match: m, Apply: actions},
		BufferID: flow.BufferNone, OutPort: flow.PortAny, OutGroup: flow.GroupAny,
	}
}

func setTo(f flow.Field, octets ...byte) flow.Action {
	a := flow.Action{Kind: flow.ActionSetField, Field: f}
	copy(a.Value[:], octets)
	return a
}

func ip(s string) netip.Prefix { return netip.MustParsePrefix(s) }

var macA, macB = flow.MAC{2, 0, 0, 0, 0, 0xa}, flow.MAC{2, 0, 0, 0, 0, 0xb}
