package command

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/cmd/weft/policy"
)

// TestDerivedCommands runs commands that are made of nothing but .proto files.
func TestDerivedCommands(t *testing.T) {
	n := &northbound{}
	n.serve(t)
	run := func(args ...string) (string, error) {
		root := &cobra.Command{Use: "weft", SilenceErrors: true, SilenceUsage: true}
		policy.Derive(root, api.Methods())
		cli.Strict(root)
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetErr(&out)
		root.SetArgs(args)
		err := root.Execute()
		return out.String(), err
	}
	for _, c := range []struct{ line, want string }{
		{"get hosts", h1},
		{"get hosts", "MAC"},
		{"path --src " + h1 + " --dst " + h3, ""},
		{`flow add --flows=[{"dpid":"` + s2 + `","priority":7}] -o json`, `"state": "confirmed"`},
		{"flow delete --all-of " + s1, "deleted  3"},
		{"token create --help", "64 hexadecimal digits"},
		{"token create --help", "weft token create NAME"},
		{"nat add --help", "ADDRESS, FIRST-LAST or PREFIX"}, // of an option
	} {
		if out, err := run(strings.Fields(c.line)...); err != nil || !strings.Contains(out, c.want) {
			t.Errorf("weft %s: %v\n%s\nwant %s", c.line, err, out, c.want)
		}
	}
	if f := n.last().added.GetFlows(); len(f) != 1 || f[0].Dpid != s2 || f[0].Priority != 7 {
		t.Errorf("added %v", f)
	}
	if p := n.last().path; p.GetSrc() != h1 || p.GetDst() != h3 {
		t.Errorf("asked for the path %v", p)
	}
	for _, c := range []struct{ line, want string }{
		{"flow add --flows=[{", "--flows [{: want JSON of"},
		{"token create", "something is missing"},
		{"get audit --limit many", "--limit \"many\": want uint32"},
		{"get hosts here", "nothing after it but flags"},
	} {
		if out, err := run(strings.Fields(c.line)...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("weft %s: %v\n%s\nwant %s", c.line, err, out, c.want)
		}
	}
}
