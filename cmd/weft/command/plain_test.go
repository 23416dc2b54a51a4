package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/cmd/weft/get"
)

// hostileName is a port's name that forges a line of a table, clears the screen
// in both ways that terminals know, and turns the text around.
const hostileName = "eth1\nforged\t1\x1b[2J\u009b2J\u202e\x7f"

// TestNothingHiddenIsPrinted: whatever a controller tells, tables have one line
// for each row, and no output has what commands a terminal.
func TestNothingHiddenIsPrinted(t *testing.T) {
	for _, format := range []string{"table", "json", "yaml"} {
		var b bytes.Buffer
		cmd := &cobra.Command{}
		cmd.SetOut(&b)
		m := &api.ListPortsResponse{Ports: []*api.Port{{Dpid: "1", Name: hostileName}}}
		err := (&cli.Output{Format: format}).Print(cmd, m, func(t *cli.Table) {
			t.Row("NAME")
			t.Row(m.Ports[0].Name)
		})
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			if strings.ContainsFunc(strings.Trim(line, "\n\t"), func(r rune) bool { return r != '\t' && cli.Hidden(r) }) {
				t.Errorf("%s: %q", format, line)
			}
		}
		switch format {
		case "table":
			if lines := strings.Count(b.String(), "\n"); lines != 2 || !strings.Contains(b.String(), `eth1\u000aforged\u00091\u001b[2J\u009b2J\u202e\u007f`) {
				t.Errorf("%d lines: %s", lines, b.String())
			}
		case "json":
			back := &api.ListPortsResponse{}
			if err := protojson.Unmarshal(b.Bytes(), back); err != nil || len(back.Ports) != 1 || back.Ports[0].Name != hostileName {
				t.Errorf("%v, %v\n%s", back, err, b.String())
			}
		}
	}
}

// TestPlainEvents: an event is one line.
func TestPlainEvents(t *testing.T) {
	event, err := json.Marshal(map[string]any{
		"time": "2026-01-02T15:04:05Z", "subject": "southbound.PortChanged",
		"event": map[string]any{"port": map[string]any{"dpid": "1", "port": 1, "name": hostileName}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"table", "json"} {
		var b bytes.Buffer
		if err := get.PrintEvent(&b, format, event); err != nil {
			t.Fatal(err)
		}
		if text := strings.TrimSuffix(b.String(), "\n"); strings.ContainsFunc(text, cli.Hidden) {
			t.Errorf("%s: %q", format, b.String())
		}
	}
}

// TestPlainErrors: what a controller says is wrong is printed likewise, line by
// line.
func TestPlainErrors(t *testing.T) {
	if got := cli.Plain(errors.New("no \x1b]0;x\x07\xff").Error()); got != `no \u001b]0;x\u0007`+"\ufffd" {
		t.Errorf("%q", got)
	}
	if got := cli.Plain("größer, “so” – 端口"); got != "größer, “so” – 端口" {
		t.Errorf("%q", got)
	}
}
