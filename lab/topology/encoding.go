package topology

import (
	"bytes"
	"fmt"
	"regexp"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"
)

// declaredEncoding is what an XML declaration says of the text's encoding.
var declaredEncoding = regexp.MustCompile(`^\s*<\?xml[^>]*\sencoding\s*=\s*["']([^"'>]{1,64})["']`)

// decode returns a text in UTF-8, without a byte order mark. It finds UTF-16
// by its mark or its zero bytes (XML 1.0, appendix F) and other encodings by the XML
// declaration. Other text that is not UTF-8 counts as Windows-1252, which has the
// letters of ISO-8859-1. An unknown encoding is an error.
func decode(text []byte) ([]byte, error) {
	var of encoding.Encoding
	declared := declaredEncoding.FindSubmatch(text[:min(len(text), 512)])
	switch {
	case bytes.HasPrefix(text, []byte("\xef\xbb\xbf")):
		text = text[3:]
	case bytes.HasPrefix(text, []byte("\xff\xfe")), bytes.HasPrefix(text, []byte("<\x00")):
		of = unicode.UTF16(unicode.LittleEndian, unicode.UseBOM)
	case bytes.HasPrefix(text, []byte("\xfe\xff")), bytes.HasPrefix(text, []byte("\x00<")):
		of = unicode.UTF16(unicode.BigEndian, unicode.UseBOM)
	case declared != nil:
		named, err := htmlindex.Get(string(declared[1]))
		if err != nil {
			return nil, fmt.Errorf("unknown encoding %q: save the file in UTF-8", declared[1])
		}
		of = named
	}
	if of == nil && utf8.Valid(text) {
		return text, nil
	}
	if of == nil {
		of = charmap.Windows1252
	}
	decoded, err := of.NewDecoder().Bytes(text)
	if err != nil {
		return nil, fmt.Errorf("the text is not in the encoding that it names: %w", err)
	}
	return decoded, nil
}
