package lua

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"ashlar/vm"
)

// dateField reads one field of os.time's table: an integer, or its numeral.
func dateField(v vm.Value, def int64) (int, bool) {
	switch x := v.(type) {
	case nil:
		return int(def), true
	case int64:
		return int(x), x >= math.MinInt32 && x <= math.MaxInt32
	case string:
		text := strings.TrimSpace(x)
		base := 10
		if len(text) > 2 && (text[:2] == "0x" || text[:2] == "0X") {
			base, text = 16, text[2:]
		}
		n, err := strconv.ParseInt(text, base, 32)
		return int(n), err == nil
	}
	return 0, false
}

func osDate(_ context.Context, c *vm.Call) ([]vm.Value, error) {
	format := c.Str(0)
	if c.Args[0] == nil {
		format = "%c"
	}
	t := c.Host.Clock.Now()
	if c.Args[1] != nil {
		sec := c.Float(1, 0)
		if math.Abs(sec) > 1e14 {
			return nil, vm.Errorf("validation", "time is out of range")
		}
		t = time.Unix(int64(sec), 0).In(t.Location())
	}
	if rest, utc := strings.CutPrefix(format, "!"); utc {
		format, t = rest, t.UTC()
	}
	if strings.HasPrefix(format, "*t") {
		return []vm.Value{map[string]any{
			"year": int64(t.Year()), "month": int64(t.Month()), "day": int64(t.Day()),
			"hour": int64(t.Hour()), "min": int64(t.Minute()), "sec": int64(t.Second()),
			"wday": int64(t.Weekday()) + 1, "yday": int64(t.YearDay()), "isdst": t.IsDST(),
		}}, nil
	}
	s, err := strftime(t, format)
	if err != nil {
		return nil, err
	}
	return []vm.Value{s}, nil
}

// strftime is C's, in the C locale.
func strftime(t time.Time, format string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			b.WriteByte(format[i])
			continue
		}
		i++
		if i >= len(format) {
			return "", vm.Errorf("validation", "the format ends with %%")
		}
		text, ok := dateVerb(t, format[i])
		if !ok {
			return "", vm.Errorf("validation", "%%%c is no conversion of os.date", format[i])
		}
		b.WriteString(text)
		if b.Len() > vm.MaxStringBytes {
			return "", vm.Errorf("limit", "the resulting string is too large")
		}
	}
	return b.String(), nil
}

func dateVerb(t time.Time, verb byte) (string, bool) {
	layouts := map[byte]string{
		'a': "Mon", 'A': "Monday", 'b': "Jan", 'h': "Jan", 'B': "January", 'c': "Mon Jan _2 15:04:05 2006",
		'd': "02", 'D': "01/02/06", 'e': "_2", 'F': "2006-01-02", 'H': "15", 'I': "03", 'm': "01", 'M': "04",
		'p': "PM", 'r': "03:04:05 PM", 'R': "15:04", 'S': "05", 'T': "15:04:05", 'x': "01/02/06",
		'X': "15:04:05", 'y': "06", 'Y': "2006", 'z': "-0700", 'Z': "MST",
	}
	if layout, ok := layouts[verb]; ok {
		return t.Format(layout), true
	}
	year, week := t.ISOWeek()
	weekday := int(t.Weekday())
	switch verb {
	case '%':
		return "%", true
	case 'n':
		return "\n", true
	case 't':
		return "\t", true
	case 'C':
		return fmt.Sprintf("%02d", t.Year()/100), true
	case 'G':
		return strconv.Itoa(year), true
	case 'g':
		return fmt.Sprintf("%02d", year%100), true
	case 'V':
		return fmt.Sprintf("%02d", week), true
	case 'j':
		return fmt.Sprintf("%03d", t.YearDay()), true
	case 's':
		return strconv.FormatInt(t.Unix(), 10), true
	case 'u':
		return strconv.Itoa((weekday+6)%7 + 1), true
	case 'w':
		return strconv.Itoa(weekday), true
	case 'U':
		return fmt.Sprintf("%02d", (t.YearDay()+6-weekday)/7), true
	case 'W':
		return fmt.Sprintf("%02d", (t.YearDay()+6-(weekday+6)%7)/7), true
	}
	return "", false
}
