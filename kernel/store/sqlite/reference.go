package sqlite

import (
	"bytes"
	"strconv"
	"strings"
)

const (
	contentPrefix = "content:"
	requestPrefix = "request:"

	// stringHere is before and after the id of a string that is kept in content.
	stringHere = 0x02
)

// reference is the data column of a request that was taken apart.
type reference struct {
	last     int64  // message.id of the list's end; 0 for an empty list
	frame    int64  // content.id
	envelope string // a column of its own: {…} or content:ID
}

func (r reference) String() string {
	return requestPrefix + strconv.FormatInt(r.last, 10) + ":" + strconv.FormatInt(r.frame, 10) + ":" + r.envelope
}

// parseReference reports false for anything that String did not write.
func parseReference(s string) (r reference, ok bool) {
	parts := strings.SplitN(s, ":", 4)
	if len(parts) != 4 || parts[0]+":" != requestPrefix {
		return r, false
	}
	var err1, err2 error
	r.last, err1 = strconv.ParseInt(parts[1], 10, 64)
	r.frame, err2 = strconv.ParseInt(parts[2], 10, 64)
	r.envelope = parts[3]
	return r, err1 == nil && err2 == nil && r.last >= 0
}

func contentColumn(id int64) string { return contentPrefix + strconv.FormatInt(id, 10) }

// contentID gives the row of content that a column names.
func contentID(column []byte) (id int64, ok bool) {
	name, ok := bytes.CutPrefix(column, []byte(contentPrefix))
	if !ok {
		return 0, false
	}
	id, err := strconv.ParseInt(string(name), 10, 64)
	return id, err == nil
}

// nextString finds the first string that is kept elsewhere; start and end are its
// place in b, -1 for none. ok is false for a marker that is damaged.
func nextString(b []byte) (start, end int, id int64, ok bool) {
	start = bytes.IndexByte(b, stringHere)
	if start < 0 {
		return -1, -1, 0, true
	}
	n := bytes.IndexByte(b[start+1:], stringHere)
	if n < 0 {
		return 0, 0, 0, false
	}
	id, err := strconv.ParseInt(string(b[start+1:start+1+n]), 10, 64)
	return start, start + n + 2, id, err == nil
}
