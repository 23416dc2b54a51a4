package ids

import (
	"strings"
	"testing"
)

func TestRulesAreRead(t *testing.T) {
	rules, err := ParseRules("f", `
# comment
content sql text="UNION SELECT" nocase protocol=tcp dport=80   # more
content sled text="\x90\x90\"#" from=10.0.0.0/8
protocol x11 protocol=tcp dport=6000-6063 flags=S
protocol ipv6 ethertype=0x86dd to=fd00::/8
anomaly big is=size-above:1500
anomaly land is=same-address
`)
	if err != nil || len(rules) != 6 {
		t.Fatalf("%d rules, %v", len(rules), err)
	}
	if r := rules[0]; r.Kind != Content || r.Name != "sql" || r.Text() != "UNION SELECT" || !r.nocase || r.protocol != protoTCP || r.dport != (ports{80, 80}) {
		t.Errorf("%+v", r)
	}
	if r := rules[1]; r.Text() != "\x90\x90\"#" || r.from.String() != "10.0.0.0/8" {
		t.Errorf("%+v", r)
	}
	if r := rules[2]; r.dport != (ports{6000, 6063}) || r.flags[0] != 2 {
		t.Errorf("%+v", r)
	}
	if r := rules[4]; r.is != "size-above" || r.limit != 1500 {
		t.Errorf("%+v", r)
	}
}

func TestBadRules(t *testing.T) {
	for text, want := range map[string]string{
		"":                         "f: no rules: want lines such as",
		"# none":                   "f: no rules",
		"alert a text=\"x\"":       `f:1: kind "alert": want content, protocol or anomaly`,
		"content a":                "f:1: content a: want KIND NAME KEY=VALUE…",
		"content a nocase":         "f:1: rule a: content without text=",
		"\ncontent a text=x":       `f:2: rule a: text=x: want 1 to 256 bytes in quotes`,
		`content a text=""`:        "want 1 to 256 bytes in quotes",
		`content a text="x`:        "f:1: a text that is not closed",
		`content a text="x" is=y`:  "unknown key; content rules take text, nocase",
		"protocol a dport=9-3":     "want a port or a range",
		"protocol a dport=0":       "want a port or a range",
		"protocol a protocol=x":    "want tcp, udp, icmp, icmpv6 or 0 to 255",
		"protocol a flags=X":       "want some of FSRPAU",
		"protocol a from=10.0.0.1": "no '/'",
		"anomaly a is=x":           "want one of malformed",
		"anomaly a is=size-above":  "want a limit of 0 to 65535, as in is=size-above:100",
		"anomaly a is=malformed:3": "want one of",
		"protocol a protocol=tcp\nprotocol a protocol=udp":    "f:2: a second rule a",
		"content a text=\"" + strings.Repeat("x", 300) + "\"": "want 1 to 256 bytes",
	} {
		if _, err := ParseRules("f", text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if _, err := ParseRules("f", strings.Repeat("x", 1)+Example(MostRules + 1)[1:]); err == nil || !strings.Contains(err.Error(), "kind") {
		t.Errorf("%v", err)
	}
	if _, err := ParseRules("f", Example(MostRules+1)); err == nil || !strings.Contains(err.Error(), "more than 10000 rules") {
		t.Errorf("%v", err)
	}
}

// The parts of a chain have each rule once, in equal shares.
func TestShares(t *testing.T) {
	rules, err := ParseRules("f", Example(200))
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 2, 4, 8, 16} {
		seen := map[string]int{}
		for k := 1; k <= n; k++ {
			part, err := Select(rules, "", Share{k, n})
			if err != nil || len(part) < 200/n || len(part) > 200/n+1 {
				t.Errorf("part %d of %d: %d rules, %v", k, n, len(part), err)
			}
			for _, r := range part {
				seen[r.Name]++
			}
		}
		if len(seen) != 200 {
			t.Errorf("%d parts have %d rules", n, len(seen))
		}
	}
	for kind, want := range map[Kind]int{Content: 120, Protocol: 40, Anomaly: 40} {
		if part, err := Select(rules, kind, Share{}); err != nil || len(part) != want {
			t.Errorf("%d rules of %s, %v", len(part), kind, err)
		}
	}
	if _, err := Select(rules[:1], "", Share{2, 2}); err == nil || !strings.Contains(err.Error(), "no rules are left of 1") {
		t.Error(err)
	}
	if _, err := Select(rules, "header", Share{}); err == nil {
		t.Error("a kind that there is not is no error")
	}
	for _, bad := range []string{"", "1", "0/2", "3/2", "a/b", "-1/2", "1/0", "1/100000"} {
		if _, err := ParseShare(bad); err == nil {
			t.Errorf("share %q is no error", bad)
		}
	}
}
