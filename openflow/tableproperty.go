package openflow

// TableProperty is one property of a table as the switch lists it, in its
// order and with the numbers that TableFeatures leaves out: fields and actions
// of experimenters (OpenFlow 1.3.5 §7.3.5.5.2).
type TableProperty struct {
	Kind    uint16   // TableProperty…; 0xfffe and 0xffff are experimenters'
	Numbers []Number // of instruction and action properties
	Fields  []OXMID  // of field properties
	Tables  []uint8  // of next-table properties
}

// Number is the type of an instruction or an action, and the length that the
// switch gives for it.
type Number struct{ Type, Length uint16 }

// OXMID names a match field by its OXM header (OpenFlow 1.3.5 §7.2.3.2);
// Experimenter counts where the class is 0xffff.
type OXMID struct{ Header, Experimenter uint32 }

// HasMask reports whether the field may be masked.
func (o OXMID) HasMask() bool { return o.Header&oxmHasMask != 0 }

// DecodeTableProperties appends, for each table in the body of a table features
// reply, the list of its properties to dst: the tables are those that
// DecodeTableFeatures returns, in the same order. Properties that OpenFlow 1.3
// does not know are listed without content.
func (v Version) DecodeTableProperties(body []byte, dst [][]TableProperty) ([][]TableProperty, error) {
	for off := 0; off < len(body); {
		n, err := v.record(body, off, 0, tableFeaturesLen)
		if err != nil {
			return dst, err
		}
		list, err := decodePropertyList(body[off : off+n])
		if err != nil {
			return dst, inBody(v, err, off)
		}
		dst = append(dst, list)
		off += n
	}
	return dst, nil
}

// decodePropertyList reads the properties of the table in b.
func decodePropertyList(b []byte) (list []TableProperty, err error) {
	answer := pair{ErrTableFeaturesFailed, TableFeaturesFailedBadLen}
	for off := tableFeaturesLen; off < len(b); {
		// both the table and its properties are aligned: a header is there
		p, n := TableProperty{Kind: be.Uint16(b[off:])}, int(be.Uint16(b[off+2:]))
		if n < 4 {
			return nil, malformed(TypeMultipartReply, off+2, "table property length below that of its header", answer)
		}
		if pad8(n) > len(b)-off {
			return nil, malformed(TypeMultipartReply, off+2, "table property longer than its table", answer)
		}
		if !p.decode(b[off+4 : off+n]) {
			return nil, malformed(TypeMultipartReply, off+4, "list in a table property cut short or of zero length", answer)
		}
		list = append(list, p)
		off += pad8(n)
	}
	return list, nil
}

// decode reads the content of a property; it reports whether it is whole.
func (p *TableProperty) decode(b []byte) bool {
	switch p.Kind {
	case TablePropertyInstructions, TablePropertyInstructionsMiss,
		TablePropertyWriteActions, TablePropertyWriteActionsMiss, TablePropertyApplyActions, TablePropertyApplyActionsMiss:
		for len(b) > 0 {
			if len(b) < 4 {
				return false
			}
			x := Number{be.Uint16(b), be.Uint16(b[2:])}
			if x.Length < 4 || int(x.Length) > len(b) {
				return false
			}
			p.Numbers = append(p.Numbers, x)
			b = b[x.Length:]
		}
	case TablePropertyNextTables, TablePropertyNextTablesMiss:
		p.Tables = append(p.Tables, b...)
	case TablePropertyMatch, TablePropertyWildcards, TablePropertyWriteSetField, TablePropertyWriteSetFieldMiss,
		TablePropertyApplySetField, TablePropertyApplySetFieldMiss:
		for len(b) > 0 {
			if len(b) < 4 {
				return false
			}
			x := OXMID{Header: be.Uint32(b)}
			b = b[4:]
			if x.Header>>16 == 0xffff {
				if len(b) < 4 {
					return false
				}
				x.Experimenter = be.Uint32(b)
				b = b[4:]
			}
			p.Fields = append(p.Fields, x)
		}
	}
	return true
}
