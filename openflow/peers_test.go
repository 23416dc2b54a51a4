package openflow

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// run runs a program of the test machine and returns what it prints.
func run(t *testing.T, program string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Fatalf("%v: apt-get install openvswitch-switch tshark", err)
	}
	var stderr bytes.Buffer
	cmd := exec.Command(program, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}

// TestOpenVSwitchReadsGoldens gives the golden octets to Open vSwitch's
// decoder, which must read all of them and see the values that the golden file
// was reviewed to have.
func TestOpenVSwitchReadsGoldens(t *testing.T) {
	var stream []byte
	var asked []golden
	for _, g := range goldens() {
		if g.noOVS == "" {
			stream = append(stream, g.octets(t)...)
			asked = append(asked, g)
		}
	}
	file := filepath.Join(t.TempDir(), "messages")
	if err := os.WriteFile(file, stream, 0o644); err != nil {
		t.Fatal(err)
	}
	parts := splitAt(run(t, "ovs-ofctl", "ofp-parse", file), "OFP")
	if len(parts) != len(asked) {
		t.Fatalf("%d answers for %d messages", len(parts), len(asked))
	}
	for i, g := range asked {
		never(t, g.name, parts[i], "***", "error: ", "unknown", "reserved")
		g.compare(t, ovsSection, tidy(parts[i]))
	}
}

// TestWiresharkReadsGoldens gives the golden octets to Wireshark's dissector.
func TestWiresharkReadsGoldens(t *testing.T) {
	var asked []golden
	var dump strings.Builder
	for _, g := range goldens() {
		if g.noWireshark != "" {
			continue
		}
		asked = append(asked, g)
		for i, b := range g.octets(t) {
			if i%16 == 0 {
				fmt.Fprintf(&dump, "\n%06x", i)
			}
			fmt.Fprintf(&dump, " %02x", b)
		}
		dump.WriteString("\n")
	}
	dir := t.TempDir()
	in, pcap := filepath.Join(dir, "messages.txt"), filepath.Join(dir, "messages.pcap")
	if err := os.WriteFile(in, []byte(dump.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	run(t, "text2pcap", "-q", "-T", "6653,40000", in, pcap)
	parts := splitAt(run(t, "tshark", "-r", pcap, "-d", "tcp.port==6653,openflow", "-O", "openflow,openflow_v1,openflow_v4"), "Frame ")
	if len(parts) != len(asked) {
		t.Fatalf("%d frames for %d messages", len(parts), len(asked))
	}
	for i, g := range asked {
		never(t, g.name, parts[i], "Malformed", "Error]", "TCP segment")
		if g.version != V10 && g.name != "flow-mod-rare" { // of OpenFlow 1.0 it leaves much undissected
			never(t, g.name, parts[i], "Expert Info")
		}
		_, text, ok := strings.Cut(parts[i], "\nOpenFlow ")
		if !ok {
			t.Errorf("%s: not taken for OpenFlow:\n%s", g.name, parts[i])
		}
		g.compare(t, wiresharkSection, tidy("OpenFlow "+text))
	}
}

// splitAt cuts text at the lines that start with prefix.
func splitAt(text, prefix string) (parts []string) {
	for line := range strings.Lines(text) {
		// the message that an error encloses belongs to it
		inError := len(parts) > 0 && strings.HasPrefix(parts[len(parts)-1], "OFPT_ERROR") && strings.Count(parts[len(parts)-1], "\n") == 1
		if strings.HasPrefix(line, prefix) && !inError {
			parts = append(parts, "")
		}
		if len(parts) > 0 {
			parts[len(parts)-1] += line
		}
	}
	return parts
}

// tidy drops empty lines, padding, and space at the ends of lines.
func tidy(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \n")
		if line != "" && !strings.Contains(line, " Pad: ") {
			out.WriteString(line + "\n")
		}
	}
	return out.String()
}

// never checks that a peer complains of nothing.
func never(t *testing.T, name, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if strings.Contains(text, w) {
			t.Errorf("%s: %q in\n%s", name, w, text)
		}
	}
}
