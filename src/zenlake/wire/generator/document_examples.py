"""Worked examples for the reference pages: real bytes for every message.

All but those in `MADE` are golden vectors: bytes that programs which are not ours have sent, or
have taken and understood.
"""

from __future__ import annotations

__all__ = ["EXAMPLES", "EXAMPLES_2018", "MADE"]

_PUT = "7d000664656d6f2f61814113f0035f0e01d717c5ebc8c813226f66cb47012a027369"
_STACK = (
    "fd00066164762f7473473a0702011af0f2dbe6a799fdfc6a10eae7fc71b03276558a675fb6c1c212d6"
    "021ab0f4e0e6a799fdfc6a10eae7fc71b03276558a675fb6c1c212d6010178"
)
_REPLY = "fb01000470712f61a10d4312f05bbd86966eb348e15dcaa77fcf1d9a890704010176"
_BODY = "bc0902022f78a10d26904ea303c30508626f647945027161"
_LINKS = "df0121081c010600040101137463702f3132372e302e302e313a32393030300101"

#: For each message of 1.x: what the bytes are, and the bytes.
EXAMPLES: dict[str, tuple[str, str]] = {
    "Scout": ("scouting", "01093901020304"),
    "Hello": (
        "scouting",
        "2209f0a6629724b97f9424f4992edd7cfeadbc01137463702f3132372e302e302e313a3330303030",
    ),
    "InitSyn": ("batch", "c109f2035f0e01d717c5ebc8c813226f66cb470ac8ff812701"),
    "InitAck": (
        "batch",
        "e1091011aa0a00c021203722c771dd1525b33512bff10bbcf52b955197f3c3a4803d7c873cf63a1bbb0f812701",
    ),
    "OpenSyn": (
        "batch",
        "420aace2a0153130458d65ba091910c7a711884ecce0bb96ccab0e876e1c03b43cfb4f924df532495cc37743"
        "741c685704f4981edc3bc70f",
    ),
    "OpenAck": ("batch", "620a9de7a512"),
    "Close": ("batch", "2302"),
    "KeepAlive": ("batch", "04"),
    "Frame": ("batch", "a59fe7a5123100be0221081a"),
    "Fragment": ("batch", "e67c027d0003722f6101b8177a7a7a7a"),
    "Join": ("batch", "a709f131315ab0f0c256f67ca9b120c676ffc70a97ff8470eefdcd1a2701"),
    "TransportOam": ("batch", "400003010203"),
    "Push": ("network", "3d01022f61010178"),
    "Request": ("network", "bc0102022f78a10d26904e2303"),
    "Response": ("network", _REPLY),
    "ResponseFinal": ("network", "9a01210d"),
    "Declare": ("network", "be072108460307"),
    "Interest": ("network", "f9057505022f2a2108"),
    "Oam": ("network", _LINKS),
    "LinkStates": ("network", _LINKS),
    "LinkState": ("network", _LINKS),
    "TimestampStack": ("network", _STACK),
    "TimestampRecord": ("network", _STACK),
    "Responder": ("network", _REPLY),
    "KeyExt": ("network", "9e210883005f020204"),
    "DeclareKeyExpr": ("network", "9e2108200100027072"),
    "UndeclareKeyExpr": ("network", "9e21080101"),
    "DeclareSubscriber": ("network", "9e2108620404022f2a"),
    "UndeclareSubscriber": ("network", "9e210883005f020204"),
    "DeclareQueryable": ("network", "9e2108640202032f2a2a"),
    "UndeclareQueryable": ("batch", "a58bbdd76931009e210885025f020000"),
    "DeclareToken": ("network", "9e2108460404"),
    "UndeclareToken": ("network", "9e210887005f020203"),
    "DeclareFinal": ("batch", "a59fe7a5123100be0221081a"),
    "Timestamp": ("network", "1d0321a0b992beccaffcfc6a10cfb1188dd746e685b735418d3f4af9280132"),
    "SourceInfo": ("network", _PUT),
    "Slice": ("batch", "25d5f3a12c7d000473682f618112010106c03e84140000"),
    "QueryBody": ("network", _BODY),
    "Put": ("network", _PUT),
    "Del": ("network", "7d000664656d6f2f6102"),
    "Query": ("network", _BODY),
    "Reply": ("network", _REPLY),
    "Err": (
        "network",
        "fb030003712f78a10d4312f0005e28e95b43ac2fad39c5c34bbd926e07450809626164207468696e67",
    ),
}

#: The same for the messages of 2018.
EXAMPLES_2018: dict[str, str] = {
    "Conduit": "b3ee0202",
    "Frag": "12034704020143",
    "RSpace": "b867000000",
    "Property": "22010001020104",
    "Scout": "0105",
    "Hello": "020401147564702f3233392e3235352e302e313a37343437",
    "Open": "2301105f1e863752b0509ec7803aecdb32fc3a3201147564702f3233392e3235352e302e313a37343437"
    "010c020203",
    "Accept": "04067a656e6f68631024ff42988ac15dbe82cdb6df5576791d00",
    "Close": "0504b0b1b2b300",
    "KeepAlive": "1001aa",
    "PingPong": "2cac02",
    "Synch": "ee0101",
    "AckNack": "2f0603",
    "Migrate": "3400020705",
    "StreamData": "47050a0141",
    "BatchedSample": "c8000202040161060162",
    "BatchedData": "48000203016101620163",
    "WriteData": "4901062f6c61622f62027a7a",
    "Pull": "4b01030a",
    "Declare": "6600010302010f01",
    "Resource": "460001010a062f6c61622f61",
    "Publisher": "0600010202",
    "Subscriber": "660301030c02",
    "Selection": "06060104030f7a656e6f683a2f2f613f7b783e307d",
    "Binding": "060801050307",
    "Commit": "2604010600",
    "Result": "261e01070a060a",
    "ForgetResource": "0601010802",
    "ForgetPublisher": "0601010902",
    "ForgetSubscriber": "060c010a02",
    "ForgetSelection": "060d010b03",
}

#: Examples that were made up, or cut short, because nobody was seen to send such a thing.
MADE = {
    "1.x": frozenset({"Close", "Fragment", "TransportOam", "UndeclareKeyExpr"}),
    "2018": frozenset({"BatchedSample", "ForgetResource", "ForgetPublisher"}),
}
