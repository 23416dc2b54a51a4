package ids

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Kind is what a rule looks at.
type Kind string

// The kinds, in the order in which a chain of functions has them.
const (
	Content  Kind = "content"  // a text in what a packet carries
	Protocol Kind = "protocol" // headers
	Anomaly  Kind = "anomaly"  // what no ordinary packet has
)

// Kinds returns the kinds.
func Kinds() []Kind { return []Kind{Content, Protocol, Anomaly} }

// Rule is one rule. A frame that meets it gives one alert.
type Rule struct {
	Kind Kind
	Name string

	// Of content.
	text   []byte
	nocase bool
	// Of content and protocol; -1 and invalid: any.
	ethertype, protocol int
	sport, dport        ports
	from, to            netip.Prefix
	flags               []flags
	// Of anomaly.
	is    string
	limit int
}

// ports is a range of ports; the zero value is any.
type ports struct{ least, most uint16 }

func (p ports) has(n uint16) bool { return p == ports{} || n >= p.least && n <= p.most }

// Text is the text of a content rule.
func (r *Rule) Text() string { return string(r.text) }

// MostRules is how many rules there may be.
const MostRules = 10_000

const (
	mostText  = 256
	mostTexts = 100_000 // bytes of all
)

// protocols are the names that protocol= takes besides numbers.
func protocols() map[string]int {
	return map[string]int{"icmp": protoICMP, "tcp": protoTCP, "udp": protoUDP, "icmpv6": protoICMPv6}
}

// ParseRules reads rules, one a line: KIND NAME KEY=VALUE…; # begins a comment.
// file names it in messages.
func ParseRules(file, text string) (rules []Rule, err error) {
	names, bytes := map[string]bool{}, 0
	for i, line := range strings.Split(text, "\n") {
		words, err := split(line)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, i+1, err)
		}
		if len(words) == 0 {
			continue
		}
		r, err := parseRule(words)
		if err == nil && names[r.Name] {
			err = fmt.Errorf("a second rule %s: give it another name", r.Name)
		}
		if bytes += len(r.text); err == nil && (len(rules) == MostRules || bytes > mostTexts) {
			err = fmt.Errorf("more than %d rules or %d bytes of texts", MostRules, mostTexts)
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, i+1, err)
		}
		names[r.Name] = true
		rules = append(rules, r)
	}
	if len(rules) == 0 {
		return nil, fmt.Errorf("%s: no rules: want lines such as: content sql text=\"UNION SELECT\" nocase", file)
	}
	return rules, nil
}

// split cuts a line into words; quotes keep what is inside together.
func split(line string) (words []string, err error) {
	for {
		line = strings.TrimLeft(line, " \t\r")
		if line == "" || line[0] == '#' {
			return words, nil
		}
		end := 0
		for end < len(line) && !strings.ContainsRune(" \t\r", rune(line[end])) {
			if line[end] != '"' {
				end++
				continue
			}
			quoted, err := strconv.QuotedPrefix(line[end:])
			if err != nil {
				return nil, fmt.Errorf("a text that is not closed, or a mistake in it: %s", line[end:])
			}
			end += len(quoted)
		}
		words, line = append(words, line[:end]), line[end:]
	}
}

func parseRule(words []string) (r Rule, err error) {
	r = Rule{Kind: Kind(words[0]), ethertype: -1, protocol: -1}
	if r.Kind != Content && r.Kind != Protocol && r.Kind != Anomaly {
		return r, fmt.Errorf("kind %q: want content, protocol or anomaly", words[0])
	}
	if len(words) < 3 {
		return r, fmt.Errorf("%s: want KIND NAME KEY=VALUE…", strings.Join(words, " "))
	}
	if r.Name = words[1]; len(r.Name) > 63 || strings.ContainsAny(r.Name, "=\"") {
		return r, fmt.Errorf("name %q: want at most 63 characters without = and quotes", r.Name)
	}
	for _, w := range words[2:] {
		key, value, _ := strings.Cut(w, "=")
		if err := r.set(key, value); err != nil {
			return r, fmt.Errorf("rule %s: %s: %w", r.Name, w, err)
		}
	}
	switch {
	case r.Kind == Content && len(r.text) == 0:
		return r, fmt.Errorf("rule %s: content without text=\"…\"", r.Name)
	case r.Kind == Anomaly && r.is == "":
		return r, fmt.Errorf("rule %s: anomaly without is=", r.Name)
	}
	return r, nil
}

// keysOf are the keys that rules of a kind take.
func keysOf(k Kind) []string {
	switch k {
	case Content:
		return []string{"text", "nocase", "protocol", "sport", "dport", "from", "to"}
	case Protocol:
		return []string{"ethertype", "protocol", "sport", "dport", "from", "to", "flags"}
	}
	return []string{"is"}
}

func (r *Rule) set(key, value string) (err error) {
	known := false
	for _, k := range keysOf(r.Kind) {
		known = known || k == key
	}
	if !known {
		return fmt.Errorf("unknown key; %s rules take %s", r.Kind, strings.Join(keysOf(r.Kind), ", "))
	}
	switch key {
	case "text":
		text, err := strconv.Unquote(value)
		if err != nil || text == "" || len(text) > mostText {
			return fmt.Errorf(`want 1 to %d bytes in quotes, such as text="\x90\x90/bin/sh"`, mostText)
		}
		r.text = []byte(text)
	case "nocase":
		r.nocase = true
	case "ethertype":
		n, err := strconv.ParseUint(value, 0, 16)
		if err != nil {
			return fmt.Errorf("want a number such as 0x86dd")
		}
		r.ethertype = int(n)
	case "protocol":
		n, ok := protocols()[value]
		if !ok {
			if n, err = strconv.Atoi(value); err != nil || n < 0 || n > 255 {
				return fmt.Errorf("want tcp, udp, icmp, icmpv6 or 0 to 255")
			}
		}
		r.protocol = n
	case "sport":
		r.sport, err = parsePorts(value)
	case "dport":
		r.dport, err = parsePorts(value)
	case "from":
		r.from, err = netip.ParsePrefix(value)
	case "to":
		r.to, err = netip.ParsePrefix(value)
	case "flags":
		r.flags, err = parseFlags(value)
	case "is":
		err = r.setAnomaly(value)
	}
	return err
}

func parsePorts(s string) (p ports, err error) {
	low, high, ranged := strings.Cut(s, "-")
	least, err := strconv.ParseUint(low, 10, 16)
	most := least
	if err == nil && ranged {
		most, err = strconv.ParseUint(high, 10, 16)
	}
	if err != nil || least < 1 || most < least {
		return p, fmt.Errorf("want a port or a range, such as 80 or 6000-6063")
	}
	return ports{uint16(least), uint16(most)}, nil
}

// flags are those of TCP, a bit each.
type flags uint8

const tcpFlags = "FSRPAU" // by bit, from the lowest

// parseFlags reads flags of which all must be set.
func parseFlags(s string) (list []flags, err error) {
	var all flags
	for _, c := range s {
		i := strings.IndexRune(tcpFlags, c)
		if i < 0 {
			return nil, fmt.Errorf("want some of %s", tcpFlags)
		}
		all |= 1 << i
	}
	return []flags{all}, nil
}

// limited are the anomalies with a limit, others those without.
func limited() []string { return []string{"ttl-below", "size-above", "run-above", "entropy-above"} }

func others() []string {
	return []string{"malformed", "ip-checksum", "fragment", "same-address", "syn-fin", "no-flags", "all-flags", "from-multicast", "zero-port", "double-tag"}
}

func (r *Rule) setAnomaly(value string) error {
	name, limit, has := strings.Cut(value, ":")
	for _, a := range limited() {
		if a == name {
			n, err := strconv.Atoi(limit)
			if !has || err != nil || n < 0 || n > 65535 {
				return fmt.Errorf("want a limit of 0 to 65535, as in is=%s:100", name)
			}
			r.is, r.limit = name, n
			return nil
		}
	}
	for _, a := range others() {
		if a == name && !has {
			r.is = name
			return nil
		}
	}
	return fmt.Errorf("want one of %s, or with a limit %s", strings.Join(others(), ", "), strings.Join(limited(), ", "))
}

// Share is the part of rules that one of several functions in a chain has: the
// kth of n. The zero value is all.
type Share struct{ K, N int }

// ParseShare reads k/n.
func ParseShare(s string) (Share, error) {
	var h Share
	k, n, ok := strings.Cut(s, "/")
	h.K, _ = strconv.Atoi(k)
	h.N, _ = strconv.Atoi(n)
	if !ok || h.K < 1 || h.N < h.K || h.N > MostRules {
		return h, fmt.Errorf("share %q: want K/N, such as 1/4 for the first of four parts", s)
	}
	return h, nil
}

// Select returns the rules of a share, each nth in turn, and of a kind unless that is
// empty. None is an error.
func Select(rules []Rule, only Kind, s Share) (list []Rule, err error) {
	if only != "" && only != Content && only != Protocol && only != Anomaly {
		return nil, fmt.Errorf("only %q: want content, protocol or anomaly", only)
	}
	i := 0
	for _, r := range rules {
		if only != "" && r.Kind != only {
			continue
		}
		if s.N == 0 || i%s.N == s.K-1 {
			list = append(list, r)
		}
		i++
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("no rules are left of %d: change the share, or the kind", len(rules))
	}
	return list, nil
}
