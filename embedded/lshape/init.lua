-- lshape: schemas as data, and what is done with them. Sealed.
--
--   lshape.t          makes schemas (lshape.t)
--   lshape.check      holds values to them (lshape.check); calling it is check.check
--   lshape.reflect    reads them (lshape.reflect)
--   lshape.luacats    writes them as LuaCATS classes (lshape.luacats)
--   lshape.assert  lshape.assert_dev  lshape.is_dev_mode      those of check
--   lshape.VERSION    "0.3.0", the version of agent-block's lshape that this does what of
--
-- A schema is a plain table with a kind. Its metatable only carries methods
-- (:is_optional(), :describe(doc), :min(n) of an integer): a schema without it, one that was
-- sent through JSON for example, checks the same. Every constructor copies what it is given.

local check = require("lshape.check")

return {
  VERSION = "0.3.0",
  t = require("lshape.t"),
  check = check,
  reflect = require("lshape.reflect"),
  luacats = require("lshape.luacats"),
  assert = check.assert,
  assert_dev = check.assert_dev,
  is_dev_mode = check.is_dev_mode,
}
