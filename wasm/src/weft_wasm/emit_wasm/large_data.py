"""Functions of MATH_LARGE, compressed. tools/large_functions.py writes this file."""

# (dtype, lanes, relaxed): ({name: (how many locals, bytes of code)}, the types of the locals and the code of each)
PREPARED: dict[tuple[str, int, bool], tuple[dict[str, tuple[int, int]], str]] = {
    ("f32", 0, False): (
        {"cos_large": (49, 769), "sin_large": (49, 766), "tan_large": (51, 768)},
        "eNrtVUtrE2EUnSTThzZ9N43t1yZnbp9JX0kLdaPIJRDozh9gKeJukk1qiSCEZCEiWkSGiCgIbpsuhCqCWmpdiLhTXHbnwqULV26k3j"
        "vxRaVQBF1lZpj7zfedOefMxz1MuXzko1TSC9aNbQrw/v5+qMCVSsVepSDvPn+/UeZ3D++f543arc82f7r68c5ltthCgKNF/mLlqImb"
        "itTMVpZaDJo5kKVWrcEsHdMaytJxrXaW2owTQhPHCxR2bIRgrwmPzVgyfHfz+l7pUDkIs5AKn1C1Gep02hkI56jL6UA7OooC6VCe1T"
        "yC3FWkbnQ6PQg7vehBr6r0+iovH9z8EDpM6w+VfqcPXU4EfYioQMQXoKjyn8ijG1HWvaIB1fRHgxjIy6pLRu8YhMCMv+TqhMsBoQki"
        "+t3kEPqdYTEZwzBiajLmm9x8/Wr1MKcHPTpxcQjEAXWIukNHySmPITh1XyM/HY5ipO5wzHc4CoGN/XJI4y5NYHzJuDSJSe2CStDlWJ"
        "ESHFvLURJJmbNdeaFFe8TO0VRui6YzlvUmVcV0hmpfk1VMbWX2OnVi4pEOUPU8j2bWMQNLkJa1TLOG5iBnlVLVzKWVxUVIvddy9qmn"
        "gyvXWk/5g81acserYk4e9NEKe4+1Xmh9e9JfP9f25NkP4GkBppT+hQCtyhnPkw1J5JDArOGAS2kOFKRHzTbSHCzI51zcEdyutr3iy8"
        "um3EhMIzGNxPiJ+QdxaQSmEZj/HhiJy1/kgNLrkrWjBY3mf//PFLQ3FwzmkcaCuX0gMt8AP4TaHg==",
    ),
    ("f32", 4, False): (
        {"cos_large": (87, 2501), "sin_large": (87, 2480), "tan_large": (89, 2469)},
        "eNrtWMtuHEUU7ZpJiInbsR2P43jGj9MVxxPbcWyI44lfY4/HcXAek/EEx0FCQiJ7VgiQvHAkWLBESCxgB8tYICEBEiwg2+xgHSGBhO"
        "ALWPAozL1d3ePbuIEghYdQted0d9Xpqql77u2aI29tNY/t6BB3+2+STya7xQHPfKW0Mv7u7rYnYWrG97zbnoSp64zx73459b2E8b/Y"
        "LP4sYfyR7pWahPGfe/mHdyR49uSxvweq0mPepcW9RA0J877S2cpB4vSBlIlK+qBpgBhFLQliHrFMhloSxByyTJZaEsS0WOYAtSSIed"
        "Q0gsPIGn+Q2hKmplvzOGwKXuCjlS9t8NH2fMVDWwVrBdPJpAqOMKmCdhxBO5PtIdmnmM0EHcxmgk50oJPZTstmmM0GR5nNBl04ii5m"
        "uyxLq3nzjWfvS/x9SQMrzZqyeqwTKaJzeeODSYlWTlp3HjkW4xi6+dKDY+h5gZbeE2mSYzGOM6mCXhxHL5O9sSY5FiPPbCYoII8Cs4"
        "VYkxyL0cdsNuhHH/qZ7Y81qZsPFTKVDq6ZAbuIQZsYYBBg/SAXEdjEaATQTOrEIk7YxAzhBIaYHUos4qRNzDBOYpjZ4WZiKq9V5yUe"
        "XqoeKDHFPIoc8ikr/whOYYRVGokiL3LIo1b+MYxijMmxOPIih3zayj+O0xhndjyOvMghn7HyT+AMJpidaMqvJ632j3EeBjDJO47nSd"
        "Ar83iYpFTqLJgM5zDvKT0V3+Eswimn0kYRHz/Hn/37wX7ZMrS0vUo5Z/WatpVSwjRKnNCS1Ou8rZQZnMcMkzMJvWZtpcxhFnPMziX0"
        "mreVsoB5LDC70KyUnVvrv0g8vNp5kEoJyihzxIu2UJawiCXO51IUeJkjrthCWab3ZpnJ5TjwMkdctYWygipWmF2JAy9zxBdsoaziAl"
        "aZXd0rlItW+ic4DedwMbUa1n6/UC5hTRbK5WahXEI45eU/KRR9hU9XccXMmgbf1mBfr8RuxgMGeJnX6LKjeG+ro87PJWssLLvdXeVJ"
        "2N/W3zxIM6zTyfyodIPpe5MS5lsF6tZ3zKgEd6/TEOPfb783KcHMVfOTZSBBjPkm+ujr5muF60h5E0xVP0lbxgboj4boGzzOf/GZ6W"
        "kJ2O63DtU/lqCpI+aVV1vmJfaYnTujn0rwimjRG+ET0TOe//oHElH3rZbPSxJ7kz7d+tEnEomvW5CIvu5GGPlnEvabvduLElYvXDNv"
        "0wmkTMpuQsWymdJdS7Mo9J5tptiQmi2ndR5yd1sidGrhurYlTNU0tpw3dN7QeUPnDZ03dN7QeUPnDZ03/He94f/KBjoj6IygM4LOCD"
        "oj6IygM4LOCKYbwdAG/kedGdkxCmAD/6RN1Tf/+H+FtVTj8RS9WTexCbqa79Rfcn+/AreTyys=",
    ),
    ("f32", 4, True): (
        {"cos_large": (87, 2499), "sin_large": (87, 2478), "tan_large": (89, 2468)},
        "eNrtWM1vG0Uc3V23NDSbJmmcprHz8Xaaxk3SNIGmcfPlxHGakn44DiVNkZCQ6J0TAqQcggRISFwQEge4wbERSEiABAfotbdyrpBAqs"
        "pfwIGPIczbWTu/JYvaSq1AaDd+9u68mfH8fr8346dsbjauregSd3tv4j3jzeKCo390lav9nZ0tR0JXte84bzgSuqY87d/8YeIXCe1/"
        "v1H4Q0L7Q51LVQntv/zmr59IcPb4tbcFbrlLf2oW97p5kNCfuypT3m84tS9hoqLar9/1YCjXPEoY6omI8syjhKEORFTGPEoYqimi9p"
        "lHCUM9aajgIDLa7zcNErqqmnM4qPNO4KOZHy3w0fJK2UFLGSt53U7SDQ6RdINWHEIrydaQ7HHJekEbWS9oRxvaybZb1iObCQ6TzQQd"
        "OIwOsh2WNav58IOX7kg8vsohTHeY2DCFYbKYFpXNaR/sIdHM8nXmkGVGjqCTH104gq5Xzfq7osRkmZGjJN2gG0fRTbK7npgsM5Ij6w"
        "V55JAnm68nJsuM9JDNBL3oQS/Z3npiavpLF165jerps4vot9UB+gEmEXIRga2OQgBFUsUWccxWZwDHMEB2ILaI47Y6gziOQbKDjeqU"
        "36vMSjy6ej14dQo5FBj3CVuDIZzAEFM1FIVfYNzDtgYjGMYIyZF6+AXGfdLWYBQnMUp2tB5+gXGfsjUYwymMkR1r1ECN2wI8xWL0YZ"
        "wHkONImM3zdFipROo0SIZz6M9cNVG/w2mEU04kjTJ8vR9fe0+HvbnzzNJ25XLG5mvSyqWISRRZ1aLM11krlymcxRTJqVi+pq1cZjCN"
        "GbIzsXzNWrnMYRZzZOcactm+vvanxKMT0APLJSihxLDnrVoWMI8FFnUhir7EsMtWLYtmBy2SXKxHX2LYFauWJVSwRHapHn2JYZ+zal"
        "nGOSyTXd5Vy3mb/2dYizM4nyiJlX9WywWsSLVcbKjlAsIpL95HLeoS3y7jkp42ieB9FXanxQ42jujjOlfNx7bLY66GGvvFlRaKb2fH"
        "dSTsD+7fOpoZ1syb/s1Vz5K+NS6h77kwzeqGHpZg85oZov07rbfGJchc1r9bBhKG0Xejl7qif3JxBQn7QVfUczw51mH+zBh1lQP911"
        "6cnJTAVe1/dKD2tYR+22PzW+80zUpEzds3hr+VYPN6yMF+heO//4UEB11vul2UiOZ6ofmrbyR2v2JOImo2UX0nEdqeeQnTkX1X9ccu"
        "VsH4E44Oo4mNhOZqkj3hjtpIcCBVK5s1jrm5JRHatHBlWxK6YqbaTJ1h6gxTZ5g6w9QZps4wdYapM0yd4b/nDP9nJjC1gakNTG1gag"
        "NTG5jawNQGpjbwYWxgaAL/Kx7N+DKz5HU8bleqrt3n/4TVRM/xPPfQNWyAN/pn9+HM318slZ+5",
    ),
    ("f64", 0, False): (
        {"cos_large": (62, 1804), "sin_large": (62, 1801), "tan_large": (64, 1803)},
        "eNrtl39MG2UYx6+lFMY2fqkTuDGee2A/gIFsYwwYtMub7m+9BP3DZX9s/OOPJbr4p9crS+tSjG4KiSjDcLlRY4cmLm5hG2lLjYrZCB"
        "L8AZoYccwZZawTV7MwEJ/3riQYY0yWuIR4T5P7vs97773tfZreJ1VVXr6/lfovpSg+RVFBeCuCNrZkVoaftZmVGUA7+yV0efxOdNTf"
        "zO5e7fr+j8mbnUmBvf/l0tzPN06e/lxgA53vRee+6T01K7Deb8Nj589+3PUcO/nBG7cWl0ILJWxw7Fpi8Neuj3p87PZvI91vDic/a2"
        "DxhUV9JtAz+jQLtM8mx6Ovxp9i0dF32q9Mz59QWU/fp6Pad1f6nGwqNNDRN3yqY8DHfng5kYwkJ99VWVw7cbXzw9DZA2xo8Itw7/xX"
        "nQoLn3lt7trs1ILuYwITwMZqgyyZ4cV05gyikwkyZojgZDYZM3naZVzDM03GLJ4OGdfyTJdxHU+njOt5ZsiYzTNTxhyea2TM5ZklYx"
        "7PtTLm81wn4wM818v4IM9sGR/imSPjBp65Mj7MM0/GAlFKg3Tm9mOh5IA0cBynz+tgQ0KLyIKXzi+8/vvE4oyw+qgDASa2hJWIEkzi"
        "SAiJHoEjZoSLSBEk4kNoiAoBKRBxo1RE9w6FXiyWRCgCMUhbiQaOgAp2BkHcBBulEiiUAEoAOC0wafVPzE4ngiPHvhZWHbh7pVUqSV"
        "AsIUiAnBOanLCMY9qswiYoM37EOX7cwuGlxlthi0orFNzGj7AVaOm21EmFTynMRrvZoSxFvBxKpQoiXgkVUMmJV5rE374xNtEeSPz0"
        "/Opjf4/Epe3Euwq2QxXnXZXiXc0hPaJCOVQvM65ZwXsH1Ji8dxq8dwAt3bmSN+5SsBZ2tYgK7obdy0/bNlCYK4h1zHXci3tgjzE/JC"
        "jmc1nwp3ov1nsvYoNHEITH7kqFTTo0eFoPFx06l3u0UYf6i56CKk+LeaL20nJTr2uaho3d0AgCv9KoVtwrYhPQS8dm3ZN9e6S8OPxM"
        "BGicQHvEmX+9WePNYUdk8/7rT0aN5uiFmtB08bDLaM4FbUWarSJmNFl5vI65jeZxoz6JaTo00QSf+rHtxfTq/gpjXPps/kxNQzhirO"
        "1/YW548qZkbtkzfnDgUbXDfLOsV/j+8+aZnCPxDUfiT8RW7B9y0/7NqRuaiump0S23ptHXVeeFOtgrMpuCLmbzkwXECLiY3U+EX4ql"
        "1t7xkf2Wr/O1iqplUsuklkktk1omtUxqmfQvJr1fGqWDJVJLpJZILZFaIv1fipQ0ev9Fh65uUvh/6m90r/xf6udP/30iuMEF+8TT/6"
        "DSPwFCW1/T",
    ),
    ("f64", 2, False): (
        {"cos_large": (77, 3830), "sin_large": (77, 3809), "tan_large": (79, 3798)},
        "eNrtWWtMHFUU3uH9GFjAPmBh4ezwWKBAactreeyyvCpSFopYkyYNKU38IbSxMf4iAbWNaawmSmJ8hBhj0pgG/zQhwVIp5UfDj6oNTW"
        "xMjE0T00ZBLVaIre1tvWfuPcxUVg0xTareu5v52PPde/fMnO/M7rcMDYUfw3zIo3WwGOulfYCD/aAZGtPvm8PpIGQhpjvMkeIgZN1G"
        "BNMXRnte/dUX20DI9KGfry3OTXlfIGR66ULf+88E2roImT4Zf8F7cbjqICHTcw4m7D2euvUGIdOd70Rfuf/2rRxCptcV3p4+3nd0jJ"
        "Dpy74nj/guv+kjZHpwuG+i4Lmx7wmZfrTlTNlK5cvfETLd/1HRqaxF9z1CpmeNzscvlLXHEDL96qXOptpDeZOETN9//syV8QO77xHy"
        "93qjuf7dt/q/JmT6uW8qVuaf9t4lZHrRxpbQoSO3PySk62iNtRHQghXsc16GlUgRIGTzmhEZjOGcERVmo8uaEc16gFOaDGk2KkZQET"
        "IUYaNiBSXfxRFpo+IEFSVDUTYqXlDRMhRtoxIEFSNDMTYqUVCxMhRro3RBxclQnI1KElS8DMXbqGRBJchQgo1yCipRhhJtVIqg6CLq"
        "NipVUEkylGSj0gSVLEPJNuoxQTllyGmjNgjKah2L2iioVBlKtVGbWI9nM0QyPSCDhCxkpLtgM3M7PBmQjuCCDHC90uQAV9M5R28mS0"
        "NW82Qiq3myIBOykM0SbDZXVty+13NO9d0ZIFSN/M8bGbD5sMuwnbBvsEGwE1DyqG0UMaoVZYn6Q6GholA6qBEUA6+64XYxvVFuSshL"
        "yZs/2wVuLHgOZCMA5AAc45UFqrsbC+5BVvMY4AEDWWO17t3sSw0igoB3kFyxVZ6QUD7kQT6KJP+BrQqEhLxQAF5kvZaExgeG7raVR+"
        "4hVKJav6gemoQKXVCIZS0SQimGIihGKRRTdQuxrFuEUEpgC5QgW2IJxSgVKilDxeRCqfhOgDkS8tvQVlNOYalyQNLcg32hGdvoLygH"
        "c8tt4VZxnubhc+3H2NoLFsFTszS9XZz1DqHpCtgBFajaigfOulJougoqoQrZKkvT7qrl9+DTi0uESuXrV/nD0rSnGqqxqjVC0j6oAR"
        "+K1kfFrcaq1gpJ10Et1CFbZ5N0vRBJAwpmO9SH1a3/zyUdAL9d0o2rkg6AuWXj30jaCOKhyQVNPH8I8kNvcGTwY545D2gY0ESAJ9uD"
        "U5uhefVyAiFu6MfTaOFwQcNPhVZoFfPs39LMBsI8YmU+sSKftRP5Dm384NkJO3lOp9kGRO00MzTjcXN69x1PRj0hu6kBDx/od+2fSD"
        "lcS4jhNrm8TS5nenppSy8uIsRZePZTfBae9JR9Vg0hn8WW5NNoZz9q0A5hep+1G0/wW10H8AdfYuzCdXry8mdF7pPPThOCCN8wIqZj"
        "0q43EPKtJdMfNZ3fen3vWUKLOfxJ+Ylv3XN+QouZOKa5PtCKZwgtJiEVx0sBQot5yhznZwjx/Pjl6DBnyDnXXhyKLhsvbiCU4dyBtM"
        "Vy38lpQmvT8edvzn31k8dPaDFjl/ZNdg2PniW0pfgaJv2bn9BinIOzmwZn98wQ/jH5EwFCmfwuqsrVGUJzunixFCAUtYQWNssPwKsW"
        "5t7OBd8ZJhwKa3T4LaEzjJcJiZ7YTWtujRCa1nY1sRFC1s56hpSFVhZaWWhloZWFVhZaWWhloZWFVhZaWWhloZWFVhb60bXQ/wW3rP"
        "yy8svKLyu/rBpZ+WXll5VfVn5Z+WXll5VffvT9sumW/xeWk/tMfjk64N/724AR+uv/PIfCu5cufhMIQSdwZL9o6zLJvwMiAbZU",
    ),
    ("f64", 2, True): (
        {"cos_large": (77, 3862), "sin_large": (77, 3841), "tan_large": (79, 3831)},
        "eNrtWVtMVEcY3rNcFnDkVi+wsvLv4bKAgKjclsuuy81SZMGW2sTEEDHpQ0FT0/SJBNpqWlNp0pI0vcQ0TRPTGPpiQkLFIvJgeLCtwa"
        "SmSVNj0mhaaCu1mGp1tPPPmZ89hG0MaWKinWFzvuX7Zmb/c+abs+eD/v7obUA0dYwcIkrkV3sDB//VMA3OHsiW4iDkYc4csqU6CHmn"
        "6eRsdvjZt//yu+oJOev/49rc9LjvVULOSma7P3kx2NJByNlY4gXfxYHKA4ScZR9I2nMsbfMNQs5SPoy78uCD29mEnNUW3Jk41n3kOC"
        "FnC/7nDvsvv+cn5Cw00D2a//LxXwg5O9J0pvRWxRs/E3IW+LzwVNac5z4hZ1nDM4mzpa3xhJxdvdTeUHMwd4yQs33nz1wZ2b/rPqH4"
        "rHcb6z56v+cHQs7O/Vh+a+YF3z1CzgrXNoUPHr7zGSFdx0hbzoARKuffiGW4FWMRhHzGMGNC8UIzY6NMdNkw4/iQE4RmKM6wafFKcy"
        "rOadNcSlMf5IixaQlKi1VcrE1LVFqc4uJsWpLS4hUXb9NWKc2lOJdNY0pLUFyCTVuttETFJdq0ZKUlKS7JpqUobZXiVtm0VKXRBWU2"
        "LU1pqxW32qalKy1Zcck27SmlpSguxaatUVpkK0W0tUpLU1yaTVsnNO96iOEsqFhCHjYz3LCeexzeTMhAcEMmuN9scIC74ZyjawNPR9"
        "XwbkDV8GbBBshCNctSNwqvJex9J/tU991eQr21//vWBrkd5b6TG0zuJLll5N6Qm0C6Xdpa+lcaVTpSWk96TJpJukbaA31getycbVcf"
        "QygWV9wgNrrBgxbIho0IANkAR8VaAznBgxbwomp4TfCCiaq56IRO/p0BzhDgXSbHmirXMlUe5EIe2iZvyVT5lql8kA8+VH0RU4309t"
        "9rKYvZTahttnKbPUJTFbihABe60LJOERRCEZqjiNa7ABd6k2WdYtgExagWR6xjlli+KUUP5UCJ9SSBVROKW9VmabCoUhmgKOfg3xrm"
        "FnoHZSCn3BJtlNCpH76Wf/ctv4ROUVrE5Vuts95mubwctkE5+rh8yVlXWC6vhAqoRLUy4nJP5cLH8NXFeULt+5X7/tG53FsFVbjO1Z"
        "bJ/VANfrSxn5a7Cte5xjJ5LdRALaq1NpPXWbapRwtthbqoTg78u8mDELCbfPuiyYMgp9z+EJObITw0uKFB1A8hcegKDfZ9ISoXhIGE"
        "YRGi2CEn9m2ExsUrDIQ4YwDPo0nABQO/Opqh2epnf9STewoLcamCXFZByzuKGVrEwbsDdoiiTvM1iMZpbhrm07J7511vZh0hv2mAoP"
        "f3uPeNph6qIUS6RQ1vUcM5yyhp6sJBhNgLT39c9MKzHrf3qiYUvfi8epmt/DcDWiHK7YC3ms/g7a8NxI8YY+7EgSx54etCz8mXJghh"
        "J2c3TOdEfPr1ekL+lhPpntiJvObre84SKvrQl2UnfvJMBwgVPXrUcH9qFE0SKjopDdvrQUJFPy/b+UlCpNukBlad117rjysdKaonxE"
        "E5velzZf6TE4RqrpFXbk5//7s3QKjo45f2jnUMDJ8lpIKGsL6/A4SKTumbWtc3tXuScEmdJ4KEirYu8dVJQmLmg4SiI/Zt4lMGNAGu"
        "RJR7uHBxexQ6HDUG4VZvjxJ0wpbTd9Gg24OEMvkuljZIyFvFVP06YuuIrSO2jtg6YuuIrSO2jtg6YuuIrSO2jtg6YuuI/bhG7CcjTe"
        "s8rfO0ztM6T+sHPp2ndZ7WeVrnaZ2ndZ7Wefr/lKdlmn6icqrIpuK82+Cx+BuBGX7If67D0aNNB27uMLQDvuF/GitL0f8AKraDPA==",
    ),
}
