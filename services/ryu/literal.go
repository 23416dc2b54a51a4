package ryu

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The values of a request's body are nil, bool, *big.Int, float64, string,
// []any and dict.

// dict is a dictionary; a key that is not a string is kept as its text.
type dict map[string]any

const (
	depthMax  = 32     // of lists and dictionaries within each other
	digitsMax = 1024   // of one number
	valuesMax = 20_000 // in all: each takes some hundred octets, however short its text
)

// parseLiteral reads a Python literal as ast.literal_eval does, which nearly
// includes JSON; it also reads JSON's true, false and null.
func parseLiteral(text string) (any, error) {
	if !utf8.ValidString(text) {
		return nil, fmt.Errorf("body is no UTF-8")
	}
	p := parser{text: text}
	p.space()
	v, err := p.value(0)
	if err != nil {
		return nil, fmt.Errorf("body, character %d: %w", p.at+1, err)
	}
	if p.space(); p.at < len(p.text) {
		return nil, fmt.Errorf("body, character %d: something follows the value", p.at+1)
	}
	return v, nil
}

// parser reads text from at on.
type parser struct {
	text   string
	at     int
	values int // so far
}

func (p *parser) peek() byte {
	if p.at < len(p.text) {
		return p.text[p.at]
	}
	return 0
}

func (p *parser) take(c byte) bool {
	if p.peek() == c && p.at < len(p.text) {
		p.at++
		return true
	}
	return false
}

// space passes over white space and comments.
func (p *parser) space() {
	for p.at < len(p.text) {
		switch c := p.text[p.at]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f':
			p.at++
		case c == '#':
			for p.at < len(p.text) && p.text[p.at] != '\n' {
				p.at++
			}
		default:
			return
		}
	}
}

func (p *parser) value(depth int) (any, error) {
	if p.values++; p.values > valuesMax {
		return nil, fmt.Errorf("more than %d values; send them in parts", valuesMax)
	}
	if depth > depthMax {
		return nil, fmt.Errorf("lists and dictionaries more than %d deep", depthMax)
	}
	switch c := p.peek(); {
	case c == '{':
		p.at++
		return p.dict(depth)
	case c == '[':
		p.at++
		return p.list(']', depth)
	case c == '(':
		p.at++
		return p.list(')', depth)
	case c == '\'' || c == '"':
		return p.strings()
	case c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.':
		return p.number()
	case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
		return p.word()
	}
	return nil, fmt.Errorf("want a value")
}

func (p *parser) dict(depth int) (any, error) {
	d := dict{}
	for p.space(); !p.take('}'); p.space() {
		key, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		if p.space(); !p.take(':') {
			return nil, fmt.Errorf("want a colon")
		}
		p.space()
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		name, ok := key.(string)
		if !ok {
			name = fmt.Sprint(key)
		}
		d[name] = v
		if p.space(); !p.take(',') && p.peek() != '}' {
			return nil, fmt.Errorf("want a comma or a closing brace")
		}
	}
	return d, nil
}

func (p *parser) list(end byte, depth int) (any, error) {
	list, comma := []any{}, false
	for p.space(); !p.take(end); p.space() {
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
		p.space()
		if p.take(',') {
			comma = true
		} else if p.peek() != end || p.at >= len(p.text) {
			return nil, fmt.Errorf("want a comma or %q", end)
		}
	}
	if end == ')' && len(list) == 1 && !comma {
		return list[0], nil // not a tuple, only parentheses
	}
	return list, nil
}

func (p *parser) word() (any, error) {
	start := p.at
	for c := p.peek(); c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'; c = p.peek() {
		p.at++
	}
	word := p.text[start:p.at]
	if c := p.peek(); c == '\'' || c == '"' {
		switch strings.ToLower(word) {
		case "b", "u", "r", "br", "rb":
			p.at = start
			return p.strings()
		}
	}
	switch word {
	case "True", "true":
		return true, nil
	case "False", "false":
		return false, nil
	case "None", "null":
		return nil, nil
	}
	p.at = start
	return nil, fmt.Errorf("want a value, not the name %.80q", word)
}

// number reads an integer, decimal or with 0x, 0o or 0b, or a decimal fraction.
func (p *parser) number() (any, error) {
	start := p.at
	for p.at < len(p.text) {
		c := p.text[p.at]
		sign := (c == '-' || c == '+') && (p.at == start || p.text[p.at-1] == 'e' || p.text[p.at-1] == 'E')
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '.' || sign) {
			break
		}
		p.at++
	}
	text := p.text[start:p.at]
	if n, err := parseInt(text); err == nil {
		return n, nil
	}
	if f, err := strconv.ParseFloat(text, 64); err == nil && strings.ContainsAny(text, ".eE") && !strings.ContainsAny(text, "xX") {
		return f, nil
	}
	p.at = start
	return nil, fmt.Errorf("%.40q is no number", text)
}

// parseInt reads what Python's int(text, 0) reads.
func parseInt(text string) (*big.Int, error) {
	s := strings.TrimSpace(text)
	digits := strings.TrimLeft(s, "+-")
	wrong := fmt.Errorf("%.40q: want a number, decimal or 0x hex", text)
	if len(s) > digitsMax || len(s)-len(digits) > 1 || digits == "" || digits[0] == '_' {
		return nil, wrong
	}
	if digits[0] == '0' && len(digits) > 1 && digits[1] >= '0' && digits[1] <= '9' && strings.Trim(digits, "0") != "" {
		return nil, wrong // neither octal nor decimal in Python 3
	}
	n, ok := new(big.Int).SetString(s, 0)
	if !ok {
		return nil, wrong
	}
	return n, nil
}
