package ryu

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// strings reads one string or several next to each other, which are one.
func (p *parser) strings() (any, error) {
	var b strings.Builder
	for {
		if err := p.string(&b); err != nil {
			return nil, err
		}
		mark := p.at
		p.space()
		if !p.atString() {
			p.at = mark
			return b.String(), nil
		}
	}
}

// atString reports whether a string begins here.
func (p *parser) atString() bool {
	rest := p.text[p.at:]
	for i := 0; i < len(rest) && i < 3; i++ {
		switch rest[i] {
		case '\'', '"':
			return true
		case 'b', 'B', 'u', 'U', 'r', 'R':
		default:
			return false
		}
	}
	return false
}

// string reads one string: '…', "…", or three quotes of either kind, with b, u
// and r before it.
func (p *parser) string(b *strings.Builder) error {
	raw, octets := false, false
	for c := p.peek(); c != '\'' && c != '"'; c = p.peek() {
		raw = raw || c == 'r' || c == 'R'
		octets = octets || c == 'b' || c == 'B'
		p.at++
	}
	quote := p.text[p.at : p.at+1]
	if strings.HasPrefix(p.text[p.at:], strings.Repeat(quote, 3)) {
		quote = strings.Repeat(quote, 3)
	}
	p.at += len(quote)
	for {
		rest := p.text[p.at:]
		switch {
		case rest == "":
			return fmt.Errorf("string without an end")
		case strings.HasPrefix(rest, quote):
			p.at += len(quote)
			return nil
		case rest[0] == '\n' && len(quote) == 1:
			return fmt.Errorf("string without an end on its line")
		case rest[0] == '\\' && !raw:
			if err := p.escape(b, octets); err != nil {
				return err
			}
		case rest[0] == '\\' && len(rest) > 1:
			b.WriteString(rest[:2])
			p.at += 2
		default:
			b.WriteByte(rest[0])
			p.at++
		}
	}
}

// escape reads the rest of an escape after a backslash.
func (p *parser) escape(b *strings.Builder, octets bool) error {
	rest := p.text[p.at+1:]
	if rest == "" {
		return fmt.Errorf("string without an end")
	}
	width := 0
	switch c := rest[0]; c {
	case '\n':
	case '\\', '\'', '"', '/': // the last is JSON's
		b.WriteByte(c)
	case 'a', 'b', 'f', 'n', 'r', 't', 'v':
		b.WriteByte("\a\b\f\n\r\t\v"[strings.IndexByte("abfnrtv", c)])
	case '0', '1', '2', '3', '4', '5', '6', '7':
		n := 1
		for n < 3 && n < len(rest) && rest[n] >= '0' && rest[n] <= '7' {
			n++
		}
		v, _ := strconv.ParseUint(rest[:n], 8, 16)
		character(b, rune(v), octets)
		p.at += 1 + n
		return nil
	case 'x':
		width = 2
	case 'u':
		width = 4
	case 'U':
		width = 8
	default:
		b.WriteByte('\\')
		b.WriteByte(c)
	}
	if width == 0 {
		p.at += 2
		return nil
	}
	if len(rest) < 1+width {
		return fmt.Errorf("escape \\%c cut short", rest[0])
	}
	v, err := strconv.ParseUint(rest[1:1+width], 16, 32)
	if err != nil || v > utf8.MaxRune {
		return fmt.Errorf("escape \\%c: want %d hex digits of a character", rest[0], width)
	}
	character(b, rune(v), octets)
	p.at += 2 + width
	return nil
}

// character writes a character, or the octet of that number.
func character(b *strings.Builder, c rune, octet bool) {
	if octet && c <= 0xff {
		b.WriteByte(byte(c))
	} else {
		b.WriteRune(c)
	}
}
