package openflow

import (
	"encoding/hex"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/flow"
)

// tableOfTwo is one table, number 3, whose properties are, in this order: next
// tables 4 and 5, match in_port and eth_dst with mask and reg0 (Open vSwitch's
// own) and an experimenter's field, instructions goto-table and an experimenter's.
const tableOfTwo = "0078 03 0000000000" + // length (filled in), table, padding
	"7461626c65000000000000000000000000000000000000000000000000000000" + // "table"
	"ffffffffffffffff ffffffffffffffff 00000003 00000064" +
	"0002 0006 0405 0000" +
	"0008 0018 80000004 8000070c 00010104 ffff0204 4f4e4600" +
	"0000 0010 00010004 ffff0008 00002320" +
	"fffe 000c 00002320 00000001 00000000"

func octets(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestDecodeTableProperties(t *testing.T) {
	body := octets(t, tableOfTwo)
	body[0], body[1] = byte(len(body)>>8), byte(len(body))
	got, err := V13.DecodeTableProperties(append(body, body...), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []TableProperty{
		{Kind: TablePropertyNextTables, Tables: []uint8{4, 5}},
		{Kind: TablePropertyMatch, Fields: []OXMID{{0x80000004, 0}, {0x8000070c, 0}, {0x00010104, 0}, {0xffff0204, 0x4f4e4600}}},
		{Kind: TablePropertyInstructions, Numbers: []Number{{1, 4}, {0xffff, 8}}},
		{Kind: 0xfffe},
	}
	if len(got) != 2 || !reflect.DeepEqual(got[0], want) || !reflect.DeepEqual(got[1], want) {
		t.Errorf("got  %+v\nwant %+v twice", got, want)
	}
	if !want[1].Fields[1].HasMask() || want[1].Fields[0].HasMask() {
		t.Error("HasMask does not read the bit")
	}
	if f, err := V13.DecodeTableFeatures(body, nil); err != nil || len(f) != 1 || f[0].Match != flow.FieldInPort.Bit()|flow.FieldEthDst.Bit() {
		t.Errorf("DecodeTableFeatures of the same: %+v, %v", f, err)
	}
}

func TestDecodeTablePropertiesMalformed(t *testing.T) {
	whole := octets(t, tableOfTwo)
	whole[0], whole[1] = byte(len(whole)>>8), byte(len(whole))
	for name, change := range map[string]func(b []byte) []byte{
		"table cut short":                      func(b []byte) []byte { return b[:40] },
		"table longer than the body":           func(b []byte) []byte { b[1]++; return b },
		"property length below its header":     func(b []byte) []byte { b[64+3] = 3; return b },
		"property longer than its table":       func(b []byte) []byte { b[64+2] = 1; return b },
		"field cut short":                      func(b []byte) []byte { b[72+3] = 0x17; return b },
		"experimenter's field without its own": func(b []byte) []byte { b[72+3] = 0x14; return b },
		"instruction of length zero":           func(b []byte) []byte { b[96+7] = 0; return b },
		"instruction longer than its list":     func(b []byte) []byte { b[96+11] = 12; return b },
	} {
		b := change(append([]byte(nil), whole...))
		if got, err := V13.DecodeTableProperties(b, nil); err == nil {
			t.Errorf("%s: decoded %+v", name, got)
		}
	}
}

// FuzzTableProperties holds DecodeTableProperties against DecodeTableFeatures:
// what that accepts it accepts, too, and sees as many tables with the same
// next tables.
func FuzzTableProperties(f *testing.F) {
	f.Add([]byte{})
	r := rand.New(rand.NewPCG(7, 7))
	for _, c := range codecs() {
		if c.name != "table-features" {
			continue
		}
		for range 5 {
			if msg, err := c.encode(V13, nil, 1, c.random(r, V13)); err == nil {
				f.Add(msg[multipartLen:])
			}
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		lists, err := V13.DecodeTableProperties(b, nil)
		tables, errFeatures := V13.DecodeTableFeatures(b, nil)
		if errFeatures != nil {
			return
		}
		if err != nil || len(lists) != len(tables) {
			t.Fatalf("%d tables, but %d lists, %v", len(tables), len(lists), err)
		}
		for i, list := range lists {
			var next TableSet
			for _, p := range list {
				if p.Kind == TablePropertyNextTables {
					next = TableSet{} // the last of several counts
					for _, n := range p.Tables {
						next.Add(n)
					}
				}
			}
			if next != tables[i].NextTables {
				t.Fatalf("table %d: next tables %v, features have %v", i, next, tables[i].NextTables)
			}
		}
	})
}
